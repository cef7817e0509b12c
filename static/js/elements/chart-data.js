/**
 * The numbers behind <live-chart>: complete, ordered by step, apart from any drawing. Drawing
 * takes `thin`, which keeps each bucket's lowest and highest point and every gap.
 */
import { number } from "core/format";

/** One series: steps and values side by side; a value that is not finite is a gap. */
class Column {
  xs = [];
  ys = [];

  put(x, y) {
    const last = this.xs.length - 1;
    if (last < 0 || x > this.xs[last]) {
      this.xs.push(x);
      this.ys.push(y);
      return;
    }
    const at = lowerBound(this.xs, x);
    const replaces = this.xs[at] === x ? 1 : 0;
    this.xs.splice(at, replaces, x);
    this.ys.splice(at, replaces, y);
  }

  cut(after) {
    const at = lowerBound(this.xs, after);
    const keep = this.xs[at] === after ? at + 1 : at;
    this.xs.length = keep;
    this.ys.length = keep;
  }

  /** The value at a step, or the last one before it; null before the first. */
  at(x) {
    const i = lowerBound(this.xs, x);
    if (this.xs[i] === x) return this.ys[i];
    return i > 0 ? this.ys[i - 1] : null;
  }
}

export class ChartData {
  columns = new Map();

  constructor(keys) {
    for (const key of keys) this.columns.set(key, new Column());
  }

  /** Takes what it knows of one step's numbers; tagged ones (`{"$num": "NaN"}`) become NaN. */
  add(step, values) {
    for (const [key, column] of this.columns) {
      const value = number(values[key]);
      if (value !== null) column.put(step, value);
    }
  }

  /** Forgets everything after a step: a resumed run walks it again. */
  cut(step) {
    for (const column of this.columns.values()) column.cut(step);
  }

  get length() {
    return Math.max(0, ...[...this.columns.values()].map((column) => column.xs.length));
  }

  get lastStep() {
    return Math.max(-1, ...[...this.columns.values()].map((column) => column.xs.at(-1) ?? -1));
  }

  /** Every step that has a number, in order. */
  steps() {
    const all = new Set();
    for (const column of this.columns.values()) for (const x of column.xs) all.add(x);
    return [...all].sort((a, b) => a - b);
  }

  exact(key, step) {
    const column = this.columns.get(key);
    const i = lowerBound(column.xs, step);
    return column.xs[i] === step ? column.ys[i] : null;
  }

  /** The highest finite value of some series; −∞ without any. */
  highest(series) {
    const columns = series.map(({ key }) => this.columns.get(key).ys);
    return columns.flat().reduce((most, y) => (Number.isFinite(y) && y > most ? y : most), -Infinity);
  }

  csv() {
    const keys = [...this.columns.keys()];
    const rows = this.steps().map((step) =>
      [step, ...keys.map((key) => this.exact(key, step) ?? "")].join(","),
    );
    return `${["step", ...keys].join(",")}\n${rows.join("\n")}\n`;
  }

  /** Runs of steps whose value is not finite: `[[from, to], …]`. */
  gaps(key) {
    const { xs, ys } = this.columns.get(key);
    const found = [];
    let open = null;
    ys.forEach((y, i) => {
      if (Number.isFinite(y)) open = null;
      else if (open) open[1] = xs[i];
      else found.push((open = [xs[i], xs[i]]));
    });
    return found;
  }
}

/** One mark a step, up to a step: all that happened there in one line. */
export function marksUpTo(marks, last) {
  const at = new Map();
  for (const { step, label } of marks) {
    if (step <= last) at.set(step, [...(at.get(step) ?? []), label]);
  }
  return [...at].map(([step, labels]) => ({ step, label: labels.join(", ") }));
}

/** At most about `2 × buckets` points that look the same at that width; gaps stay as null. */
export function thin({ xs, ys }, buckets) {
  const clean = (y) => (Number.isFinite(y) ? y : null);
  if (xs.length <= buckets * 2) return { x: xs.slice(), y: ys.map(clean) };
  const x = [];
  const y = [];
  const take = (i) => {
    x.push(xs[i]);
    y.push(clean(ys[i]));
  };
  const size = xs.length / buckets;
  for (let b = 0; b < buckets; b += 1) {
    const from = Math.floor(b * size);
    const to = Math.min(xs.length, Math.floor((b + 1) * size));
    const picked = [extreme(ys, from, to, -1), extreme(ys, from, to, 1), firstGap(ys, from, to)];
    [...new Set(picked)].filter((i) => i >= 0).sort((a, c) => a - c).forEach(take);
  }
  if (x.at(-1) !== xs.at(-1)) take(xs.length - 1);
  return { x, y };
}

function extreme(ys, from, to, sign) {
  let best = -1;
  for (let i = from; i < to; i += 1) {
    if (Number.isFinite(ys[i]) && (best < 0 || sign * ys[i] > sign * ys[best])) best = i;
  }
  return best;
}

function firstGap(ys, from, to) {
  for (let i = from; i < to; i += 1) if (!Number.isFinite(ys[i])) return i;
  return -1;
}

function lowerBound(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}
