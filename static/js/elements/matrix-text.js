/** The words under a matrix: what the colours and hatches mean, and the same numbers as a table. */

import { h } from "core/dom";
import { full, short } from "core/format";
import { t } from "core/i18n";
import { CELL, isDiverging } from "core/scales";
import { hatch } from "elements/matrix-paint";

const TABLE_ROWS = 24;
const TABLE_COLS = 16;

const MEANING = {
  [CELL.masked]: () => t("masked"),
  [CELL.nan]: () => t("NaN: not a number"),
  [CELL.posinf]: () => t("+∞"),
  [CELL.neginf]: () => t("−∞"),
  [CELL.missing]: () => t("not computed"),
};

/** Legend of one matrix: the ramp with its ends, the axes in words, the hatches that occur. */
export function legend(data, theme) {
  const out = document.createDocumentFragment();
  if (data.domain.count && data.legend !== "axes") out.append(scaleBar(data, theme));
  for (const [title, role] of [[data.rowTitle, data.rowRole ?? "query"], [data.colTitle, data.colRole ?? "key"]]) {
    if (!title) continue;
    const swatch = h("i", { class: `matrix-swatch role-${role}` });
    out.append(h("span", { class: `matrix-axis role-${role}` }, swatch, title));
  }
  for (const code of new Set(data.codes)) {
    if (code === CELL.value) continue;
    const meaning = (code === CELL.masked && data.masked) || MEANING[code]();
    out.append(h("span", { class: "matrix-axis" }, swatchOf(code, theme), meaning));
  }
  if (data.note) out.append(h("span", { class: "matrix-axis" }, data.note));
  return out;
}

function scaleBar(data, theme) {
  const bar = h("canvas", { class: "matrix-ramp", width: 128, height: 1 });
  const ctx = bar.getContext("2d");
  const image = ctx.createImageData(128, 1);
  new Uint32Array(image.data.buffer).set(theme.packed.filter((_, i) => i % 2 === 1));
  ctx.putImageData(image, 0, 0);
  const [low, high] = ends(data);
  return h("span", { class: "matrix-scale" }, low, bar, high);
}

function ends(data) {
  const diverging = isDiverging(data.ramp);
  if (data.scale === "unit") return ["0", "1"];
  if (data.scale === "row") return diverging ? [t("−row max"), t("row max")] : ["0", t("row max")];
  const peak = short(data.peak ?? data.domain.peak, 3);
  if (data.scale === "log") {
    const suffix = t("log, 5 decades");
    return diverging ? [`−${peak}`, `${peak} (${suffix})`] : ["0", `${peak} (${suffix})`];
  }
  return [diverging ? `−${peak}` : "0", peak];
}

function swatchOf(code, theme) {
  const node = h("canvas", { class: "matrix-swatch", width: 12, height: 12 });
  const ctx = node.getContext("2d");
  ctx.fillStyle = hatch(ctx, code, theme);
  ctx.fillRect(0, 0, 12, 12);
  return node;
}

/** A real table of the part around `cell`: at most 24 × 16 numbers, and it says so. */
export function fillTable(box, data, cell) {
  const [r0, r1] = span(data.rows, TABLE_ROWS, cell?.row ?? 0);
  const [c0, c1] = span(data.cols, TABLE_COLS, cell?.col ?? 0);
  const table = h("table", null);
  const part = data.rows * data.cols > (r1 - r0) * (c1 - c0);
  const caption = part
    ? t("{title}: rows {r0}–{r1} of {rows}, columns {c0}–{c1} of {cols}", {
        title: data.title ?? "", r0, r1: r1 - 1, rows: data.rows, c0, c1: c1 - 1, cols: data.cols,
      })
    : data.title ?? "";
  table.append(h("caption", { class: "caption" }, caption));
  const head = table.createTHead().insertRow();
  head.append(h("th", null, `${data.rowTitle ?? ""} \\ ${data.colTitle ?? ""}`));
  for (let col = c0; col < c1; col += 1) head.append(scoped("col", data.colLabels[col], col));
  const body = table.createTBody();
  for (let row = r0; row < r1; row += 1) {
    const line = body.insertRow();
    line.append(scoped("row", data.rowLabels[row], row));
    for (let col = c0; col < c1; col += 1) line.append(cellText(data, row, col));
  }
  box.replaceChildren(table);
}

function span(size, most, at) {
  const from = Math.max(0, Math.min(size - most, at - Math.floor(most / 2)));
  return [from, Math.min(size, from + most)];
}

function scoped(scope, label, index) {
  return h("th", { scope }, label || String(index));
}

function cellText(data, row, col) {
  const i = row * data.cols + col;
  const code = data.codes[i];
  const title = code === CELL.value ? full(data.values[i]) : null;
  return h("td", { class: "number", title }, code === CELL.masked ? t("masked") : short(data.values[i]));
}
