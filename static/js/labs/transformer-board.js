/**
 * The figure of a stage on the page: cards with matrices before and after an operation, their
 * linked highlights, the slide from one stage into the next, and the reveal of what is computed.
 */

import { clear, h } from "core/dom";
import { t } from "core/i18n";
import { tween } from "core/motion";
import { isDiverging } from "core/scales";
import { rem } from "core/theme";
import "elements/matrix-view";
import { AXES, figure } from "labs/transformer-figures";
import { causal } from "labs/transformer-heads";

const SLIDE_MS = 320;
const SLOW_MS = 600;
const FAST_MS = 450;
const SLOW_CELLS = 12;

const STACKED = ["stack", "columns", "heads"]; // the result stands below its inputs
const INPUT_FRAME = 96; // px of an input's card around its matrix, and of the arrow below
const RESULT_FRAME = { stack: 112, heads: 112, columns: 156 }; // of a result's: title, legend (narrow: in lines), table
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

export class Board {
  /** `onHover(cell)` and `onSelect(cell)` get full cell names or null. */
  constructor(host, { onHover, onSelect }) {
    Object.assign(this, { host, onHover, onSelect, views: [], pool: new Map() });
  }

  /** Draws a step of a trace for one head, its result `covered` until `play` computes it. */
  async show(trace, step, { head, scale, covered = false }) {
    const spec = figure(step, trace);
    const turn = (this.turn = Symbol("turn"));
    const tall = this.#heights(spec);
    const load = (side) => (one) => this.#load(trace, one, { head, scale, side, tall: tall[side], stacked: STACKED.includes(spec.layout) });
    const views = await Promise.all([...spec.before.map(load("before")), ...spec.after.map(load("after"))]);
    if (turn !== this.turn) return false;
    const old = new Map(this.views.map((view) => [view.key, view.element.getBoundingClientRect()]));
    this.spec = spec;
    this.views = views;
    this.pool = new Map(views.map((view) => [view.key, view.element]));
    for (const view of views) {
      view.element.data = view.data;
      view.element.reveal = covered && view.side === "after" ? { row: -1, count: 0, rows: 0 } : null;
      view.element.marks = [];
    }
    this.#arrange();
    this.old = old;
    return true;
  }

  /**
   * How high (rem px) the matrices may be for the result to be seen without scrolling, inputs above
   * it. Where the page scrolls as a whole, `play` brings the result into view instead.
   */
  #heights({ before, layout }) {
    if (layout === "side") return { before: 420, after: 420 };
    const place = this.host.closest(".lab-centre");
    const unit = rem() / 16;
    if (!place || getComputedStyle(place).overflowY === "visible") return { before: 130, after: 320 };
    const top = this.host.getBoundingClientRect().top - place.getBoundingClientRect().top + place.scrollTop;
    const room = (place.clientHeight - top) / unit - RESULT_FRAME[layout];
    if (!before.length) return { before: 0, after: clamp(room, 200, 420) };
    const free = room - INPUT_FRAME;
    const input = clamp(0.38 * free, 90, 220);
    return { before: input, after: clamp(free - input, 150, 420) };
  }

  async #load(trace, one, { head, scale, side, tall, stacked }) {
    const own = one.head ?? (one.heads ? head : null);
    const key = `${one.tensor}/${own}`;
    const matrix = await trace.matrix(one.tensor, own);
    const [rows, cols] = [AXES[one.rows], AXES[one.cols]];
    const data = {
      ...matrix,
      title: one.title, ramp: one.ramp, groups: one.groups, square: one.square, maxCell: one.maxCell,
      maxHeight: tall, minCell: stacked && side === "before" ? 2 : 3,
      codes: one.heads && one.cols === "key" ? futureCodes(matrix, one.tensor) : null, masked: t("masked: the future"),
      rowLabels: rows.labels(trace, matrix.rows), colLabels: cols.labels(trace, matrix.cols),
      rowTitle: rows.title(), colTitle: cols.title(), rowRole: one.rowRole ?? rows.role, colRole: cols.role,
      scale: fitting(scale, one.ramp, matrix.cols),
      legend: one.quiet ? "axes" : undefined,
    };
    const quiet = one.quiet || (stacked && side === "before"); // an input was the result of an earlier stage
    return { key, side, one, quiet, head: own, data, element: this.pool.get(key) ?? this.#element(one.tensor, own) };
  }

  #element(tensor, head) {
    const name = (event) => event.detail && { tensor, head, row: event.detail.row, col: event.detail.col };
    return h("matrix-view", {
      "oncell-hover": (event) => this.onHover(name(event)),
      "oncell-select": (event) => this.onSelect(name(event)),
    });
  }

  #arrange() {
    const weight = (view) => Math.max(16, Math.min(64, view.data.cols));
    const card = (view) => grow(weight(view), "div", { class: `card figure-card${view.one.slim ? " slim" : ""}${view.quiet ? " quiet" : ""}` }, view.element);
    const total = (side) => this.views.filter((view) => view.side === side).reduce((sum, view) => sum + weight(view), 0);
    const of = (side) => this.views.filter((view) => view.side === side).map(card);
    const before = of("before");
    clear(this.host,
      before.length ? grow(total("before"), "div", { class: `figure-side${this.spec.before.some((one) => one.slim) ? " with-slim" : ""}` }, before) : null,
      this.spec.op ? h("div", { class: "figure-op" }, h("span", null, this.spec.op), h("span", { class: "figure-arrow", "aria-hidden": "true" })) : null,
      grow(total("after"), "div", { class: "figure-side after" }, of("after")));
    this.host.className = `figure ${this.spec.layout}`;
  }

  /** The view that holds a cell, if it is on the board. */
  find(cell) {
    return cell && this.views.find((view) => view.one.tensor === cell.tensor && (view.head === null || view.head === cell.head));
  }

  value(cell) {
    const view = this.find(cell);
    return view?.data.values[cell.row * view.data.cols + cell.col];
  }

  main() {
    return this.views.find((view) => view.side === "after");
  }

  /** The cell a sentence is about when none is chosen: the strongest of the last row. */
  telling() {
    const view = this.main();
    const { rows, cols, values } = view.data;
    const row = rows - 1;
    let col = 0;
    for (let i = 0; i < cols; i += 1) {
      const size = Math.abs(values[row * cols + i]);
      if (Number.isFinite(size) && size > Math.abs(values[row * cols + col])) col = i;
    }
    return { tensor: view.one.tensor, head: view.head, row, col };
  }

  /**
   * Locks a cell (or none) and lights what belongs to `active` in every other matrix. With nothing
   * active, the cell that the sentence talks about is outlined.
   */
  highlight({ locked, active }) {
    const shown = active ?? this.telling();
    const holder = this.find(shown);
    const links = holder?.side === "after" ? this.spec.links(shown) : [];
    const before = this.views.filter((view) => view.side === "before");
    for (const view of this.views) {
      const index = before.indexOf(view);
      const same = view.side === "after" && holder?.side === "after" && view.data.rows === holder.data.rows;
      let marks = [];
      if (index >= 0) marks = links[index] ?? [];
      else if (view === holder && !active) marks = [{ row: shown.row, col: shown.col, rowRole: view.data.rowRole, colRole: view.data.colRole, role: "accent" }];
      else if (view !== holder && same && view.data.rows > 1) marks = [{ row: shown.row, role: view.data.rowRole }];
      view.element.marks = marks;
      const own = locked && this.find(locked) === view ? locked : null;
      const now = view.element.selected;
      if (now?.row !== own?.row || now?.col !== own?.col) view.element.selected = own;
    }
  }

  /** Slides shared matrices into place, then fills the result: one row slowly, the rest quickly. */
  async play({ speed, signal }) {
    const results = this.views.filter((view) => view.side === "after");
    const told = this.telling();
    const { row } = told;
    await this.#slide(speed, signal);
    const cells = Math.min(results[0].data.cols, SLOW_CELLS);
    await tween(SLOW_MS / speed, signal, (share) => {
      const count = Math.ceil(share * cells);
      for (const view of results) view.element.reveal = { row, count: count >= cells ? view.data.cols : count, rows: 0 };
      this.#operands({ ...told, col: Math.min(count, cells - 1) });
    });
    await tween(FAST_MS / speed, signal, (share) => {
      for (const view of results) view.element.reveal = { row, count: view.data.cols, rows: Math.floor(share * view.data.rows) };
    });
    for (const view of results) view.element.reveal = null;
  }

  #operands(active) {
    const links = this.spec.links(active);
    this.views.filter((view) => view.side === "before").forEach((view, i) => { view.element.marks = links[i] ?? []; });
  }

  /** Scrolls the result into view once it has its size: the frame that draws it, and one more. */
  #bringResult() {
    const { stage } = this.main().element;
    const bring = () => stage.isConnected && stage.scrollIntoView({ block: "nearest", behavior: "smooth" });
    requestAnimationFrame(() => requestAnimationFrame(bring));
  }

  async #slide(speed, signal) {
    const moves = this.views.filter((view) => this.old?.has(view.key)).map((view) => {
      const [from, to] = [this.old.get(view.key), view.element.getBoundingClientRect()];
      const shift = `translate(${from.x - to.x}px, ${from.y - to.y}px) scale(${to.width ? from.width / to.width : 1})`;
      return view.element.animate([{ transform: shift, transformOrigin: "0 0" }, { transform: "none", transformOrigin: "0 0" }], { duration: SLIDE_MS / speed, easing: "cubic-bezier(0.2, 0, 0, 1)" });
    });
    this.#bringResult();
    const stop = () => moves.forEach((move) => move.finish());
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    await Promise.allSettled(moves.map((move) => move.finished));
  }
}

/** An element that takes its share of the room by the columns it has to show. */
function grow(weight, ...made) {
  const node = h(...made);
  node.style.setProperty("--weight", String(weight));
  return node;
}

/** Signed numbers have no 0–1, and in a single column every number is its row's maximum. */
function fitting(scale, ramp, cols) {
  if (scale === "unit" && isDiverging(ramp)) return "max";
  return scale === "row" && cols === 1 ? "max" : scale;
}

/** Weights of exactly 0 above the diagonal and −∞ there are the mask's doing: hatch both. */
function futureCodes({ rows, values }, tensor) {
  if (!tensor.endsWith(".masked") && !tensor.endsWith(".weights")) return null;
  const codes = causal(rows);
  return codes.map((code, i) => (code && (values[i] === 0 || values[i] === -Infinity) ? code : 0));
}

/** The scales a figure can be read in, named. */
export const scaleNames = () => ({ row: t("row maximum"), unit: t("0 to 1"), max: t("maximum of all"), log: t("logarithm") });
