/**
 * <matrix-view>: a heat map on canvas with named axes, for any lab.
 *
 *   view.data = {
 *     rows, cols, values: Float32Array (row-major),
 *     codes?: Uint8Array of core/scales CELL,        // masked, not computed; NaN and ±∞ are found
 *     masked?: string,                               // why cells are masked, for the legend
 *     rowLabels, colLabels: string[],                // token texts with visible glyphs
 *     rowTitle, colTitle, title, note?,              // "query (looks)", "key (is looked at)"
 *     rowRole?, colRole?, ramp?: "attention" | "diverging" | "sequential" | "query" | …,
 *     scale?: "unit" | "row" | "max" | "log", peak?, square?, groups?: column numbers, maxCell? }
 *   view.marks = [{row?, col?, role?, rowRole?, colRole?, cell?}]   // highlights set from outside
 *   view.selected = {row, col} | null                                // the locked cell
 *
 * Hover previews (`cell-hover`, detail {row, col, value} or null), click or Enter locks
 * (`cell-select`), Esc, a second click or a click beside the cells unlocks (`cell-select`, null).
 * Arrows move the cell cursor, Home/End go along the row, Ctrl+Home/End to the corners, + and −
 * zoom. Below the canvas stand what the colours mean and a table of the same numbers.
 */

import { emit, h } from "core/dom";
import { short } from "core/format";
import { t } from "core/i18n";
import { CELL, classify, domain, isDiverging, levels, ramp } from "core/scales";
import { onTheme } from "core/theme";
import { paintLabels } from "elements/matrix-labels";
import * as paint from "elements/matrix-paint";
import { fillTable, legend } from "elements/matrix-text";

export class MatrixView extends HTMLElement {
  #data = null;
  #layout = null;
  #theme = null;
  #marks = [];
  #selected = null;
  #hovered = null;
  #cursor = { row: 0, col: 0 };
  #reveal = null;
  #zoom = 1;
  #frame = 0;
  #stale = true;
  #unread = true;

  connectedCallback() {
    if (!this.stage) this.#build();
    this.unlisten ??= onTheme(() => this.#retheme());
    this.resizer ??= new ResizeObserver(() => this.#invalidate(true));
    this.resizer.observe(this);
    if (this.#data) this.#invalidate(true);
  }

  disconnectedCallback() {
    this.unlisten?.();
    this.unlisten = null;
    this.resizer?.disconnect();
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  #build() {
    this.head = h("header", { class: "matrix-head" });
    this.titleNode = this.head.appendChild(h("span", { class: "matrix-title" }));
    this.zoomBar = this.head.appendChild(h("span", { class: "matrix-zoom" }));
    for (const [sign, label, factor] of [["−", t("Zoom out"), 1 / 1.5], ["+", t("Zoom in"), 1.5]]) {
      this.zoomBar.append(h("button", { class: "button small quiet", type: "button", "aria-label": label, onclick: () => this.zoomBy(factor) }, sign));
    }
    this.base = h("canvas");
    this.over = h("canvas");
    this.spacer = h("div");
    this.scroller = h("div", { class: "matrix-scroll" }, this.spacer);
    this.stage = h("div", { class: "matrix-stage", tabIndex: 0, role: "group" }, this.base, this.over, this.scroller);
    this.spoken = h("p", { class: "visually-hidden", "aria-live": "polite" });
    this.legendNode = h("footer", { class: "matrix-legend" });
    this.tableBox = h("details", { class: "matrix-table", ontoggle: () => this.#table() },
      h("summary", null, t("As a table")), h("div", { class: "matrix-table-body" }));
    this.append(this.head, this.stage, this.spoken, this.legendNode, this.tableBox);
    this.scroller.addEventListener("scroll", () => this.#invalidate(false), { passive: true });
    this.stage.addEventListener("pointermove", (event) => this.#move(event));
    this.stage.addEventListener("pointerleave", () => this.#hover(null));
    this.stage.addEventListener("click", (event) => this.#click(event));
    this.stage.addEventListener("keydown", (event) => this.#key(event));
    this.stage.addEventListener("focus", () => this.#overlay());
    this.stage.addEventListener("blur", () => this.#overlay());
  }

  // ------------------------------------------------------------ properties

  get data() {
    return this.#data;
  }

  set data(data) {
    if (!this.stage) this.#build();
    if (this.#data?.ramp !== (data?.ramp ?? "sequential")) this.#theme = null;
    const sizeChanged = this.#data?.rows !== data?.rows || this.#data?.cols !== data?.cols;
    this.#data = data ? prepare(data) : null;
    this.#stale = true;
    if (sizeChanged) {
      this.#zoom = 1;
      this.#hovered = null;
      this.scroller.scrollTo(0, 0);
    }
    if (data && !this.#inside(this.#selected)) this.#selected = null;
    if (data && !this.#inside(this.#cursor)) this.#cursor = { row: 0, col: 0 };
    this.#words();
    this.#invalidate(true);
  }

  get marks() {
    return this.#marks;
  }

  set marks(marks) {
    this.#marks = marks ?? [];
    this.#overlay();
  }

  get selected() {
    return this.#selected;
  }

  set selected(cell) {
    this.#selected = this.#inside(cell) ? { row: cell.row, col: cell.col } : null;
    if (this.#selected) {
      this.#cursor = { ...this.#selected };
      this.#bring(this.#cursor);
    }
    this.#overlay();
    this.#table();
  }

  /** While a stage is played: {row, count, rows} — `count` cells of `row`, and the first `rows` rows. */
  set reveal(reveal) {
    this.#reveal = reveal;
    this.#stale = true;
    this.#invalidate(false);
  }

  value(row, col) {
    return this.#data.values[row * this.#data.cols + col];
  }

  zoomBy(factor) {
    this.#zoom = Math.max(1, Math.min(12, this.#zoom * factor));
    this.#invalidate(true);
    requestAnimationFrame(() => this.#bring(this.#selected ?? this.#cursor));
  }

  #retheme() {
    this.#theme = null;
    this.#stale = true;
    this.#words();
    this.#invalidate(true);
  }

  #inside(cell) {
    const d = this.#data;
    return Boolean(d && cell && cell.row >= 0 && cell.col >= 0 && cell.row < d.rows && cell.col < d.cols);
  }

  // ------------------------------------------------------------ drawing

  #invalidate(resized) {
    if (resized) this.#layout = null;
    this.#stale = true;
    if (!this.#frame && this.isConnected) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    if (!this.#data || !this.isConnected) return;
    this.#theme ??= paint.theme(ramp(this.#data.ramp, this));
    if (!this.#layout) this.#measure();
    if (this.#unread) this.legendNode.replaceChildren(legend(this.#data, this.#theme));
    this.#unread = false;
    if (this.#stale) {
      const ctx = prepareCanvas(this.base, this.#layout.width, this.#layout.height);
      paint.paintCells(ctx, this.#data, this.#layout, this.#theme, this.#scroll(), this.#reveal);
      this.#stale = false;
    }
    this.#overlay();
    emit(this, "matrix-painted");
  }

  #measure() {
    const data = this.#data;
    const width = this.stage.clientWidth || this.clientWidth || 320;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const L = paint.layout(this.base.getContext("2d"), data, {
      width,
      height: (data.maxHeight ?? 420) * rem,
      zoom: this.#zoom,
      maxCell: (data.maxCell ?? 26) * rem,
      minCell: data.minCell ?? 3,
      square: data.square !== false,
    });
    L.width = width;
    L.height = Math.ceil(L.top + L.viewH + 3);
    this.#layout = L;
    this.stage.style.height = `${L.height}px`;
    Object.assign(this.scroller.style, {
      left: `${L.left}px`, top: `${L.top}px`, width: `${L.viewW}px`, height: `${L.viewH}px`,
    });
    Object.assign(this.spacer.style, { width: `${L.contentW}px`, height: `${L.contentH}px` });
    const pans = L.contentW > L.viewW + 1 || L.contentH > L.viewH + 1;
    this.scroller.classList.toggle("pans", pans);
    this.zoomBar.hidden = !pans && L.cellW >= 12 && L.cellH >= 12;
  }

  #scroll() {
    return { x: this.scroller.scrollLeft, y: this.scroller.scrollTop };
  }

  #overlay() {
    const [data, L] = [this.#data, this.#layout];
    if (!data || !L || !this.#theme) return;
    const ctx = prepareCanvas(this.over, L.width, L.height);
    const marks = [...this.#marks];
    const cell = this.#hovered ?? this.#selected;
    const roles = { rowRole: data.rowRole ?? "query", colRole: data.colRole ?? "key" };
    if (cell) marks.push({ ...cell, ...roles, role: "accent", locked: cell === this.#selected });
    else if (this.stage.matches(":focus-visible")) marks.push({ ...this.#cursor, role: "accent", cell: true });
    paintLabels(ctx, data, L, this.#theme, this.#scroll(), marks);
    paint.paintMarks(ctx, data, L, this.#theme, this.#scroll(), marks);
  }

  #words() {
    const data = this.#data;
    if (!data) return;
    this.titleNode.textContent = data.title ?? "";
    const shape = `${data.rows} × ${data.cols}`;
    this.titleNode.append(" ", h("span", { class: "matrix-shape" }, shape));
    this.stage.setAttribute(
      "aria-label",
      t("{title}, {shape}. Rows: {rows}. Columns: {cols}. Arrow keys move, Enter locks, Escape unlocks.", {
        title: data.title ?? "", shape, rows: data.rowTitle ?? "", cols: data.colTitle ?? "",
      }),
    );
    this.#unread = true; // the legend needs colours, which an element outside of the page lacks
    this.#table();
  }

  #table() {
    if (!this.tableBox?.open || !this.#data) return;
    fillTable(this.tableBox.lastElementChild, this.#data, this.#selected ?? this.#cursor);
  }

  // ------------------------------------------------------------ pointer and keys

  #cellOf(event) {
    const box = this.stage.getBoundingClientRect();
    return this.#layout && this.#data
      ? paint.cellAt(this.#layout, this.#scroll(), event.clientX - box.left, event.clientY - box.top, this.#data)
      : null;
  }

  #move(event) {
    if (event.pointerType === "touch") return;
    this.#hover(this.#cellOf(event));
  }

  #hover(cell) {
    if (cell?.row === this.#hovered?.row && cell?.col === this.#hovered?.col) return;
    this.#hovered = cell;
    this.#overlay();
    this.#emit("cell-hover", cell);
  }

  #click(event) {
    const cell = this.#cellOf(event);
    const same = cell && cell.row === this.#selected?.row && cell.col === this.#selected?.col;
    this.#lock(same ? null : cell);
  }

  #lock(cell) {
    if (!cell && !this.#selected) return;
    this.selected = cell;
    this.#emit("cell-select", cell);
    if (cell) this.#speak(cell);
  }

  #emit(name, cell) {
    const detail = cell ? { ...cell, value: this.value(cell.row, cell.col) } : null;
    emit(this, name, detail);
  }

  #speak({ row, col }) {
    const d = this.#data;
    this.spoken.textContent = t("row {row} {rowName}, column {col} {colName}: {value}", {
      row, rowName: d.rowLabels[row] ?? "", col, colName: d.colLabels[col] ?? "",
      value: d.codes[row * d.cols + col] === CELL.masked ? t("masked") : short(this.value(row, col)),
    });
  }

  #key(event) {
    const d = this.#data;
    if (!d || event.altKey || event.metaKey) return;
    const { row, col } = this.#hovered ?? this.#selected ?? this.#cursor;
    const far = event.ctrlKey;
    const to = {
      ArrowLeft: { row, col: col - 1 }, ArrowRight: { row, col: col + 1 },
      ArrowUp: { row: row - 1, col }, ArrowDown: { row: row + 1, col },
      Home: { row: far ? 0 : row, col: 0 }, End: { row: far ? d.rows - 1 : row, col: d.cols - 1 },
    }[event.key];
    if (to) {
      if (this.#inside(to)) this.#step(to);
    } else if (event.key === "Enter") {
      this.#lock(this.#hovered ?? this.#cursor);
    } else if (event.key === "Escape" && (this.#selected || this.#hovered)) {
      this.#hover(null);
      this.#lock(null);
    } else if (event.key === "+" || event.key === "-") {
      this.zoomBy(event.key === "+" ? 1.5 : 1 / 1.5);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The keyboard's cell cursor: follows a lock when there is one, previews otherwise. */
  #step(cell) {
    this.#cursor = cell;
    this.#bring(cell);
    if (this.#selected) this.#lock(cell);
    else this.#hover(cell);
    this.#speak(cell);
    this.#table();
  }

  #bring(cell) {
    const L = this.#layout;
    if (!L || !cell) return;
    const s = this.scroller;
    const [x, y] = [cell.col * L.cellW, cell.row * L.cellH];
    if (x < s.scrollLeft || x + L.cellW > s.scrollLeft + L.viewW) s.scrollLeft = x - L.viewW / 2;
    if (y < s.scrollTop || y + L.cellH > s.scrollTop + L.viewH) s.scrollTop = y - L.viewH / 2;
  }
}

function prepare(data) {
  const codes = Uint8Array.from(data.values, (value, i) => data.codes?.[i] || classify(value));
  const name = data.ramp ?? "sequential";
  return {
    rowLabels: [], colLabels: [], ...data, codes, ramp: name,
    domain: domain(data.values, codes),
    levels: levels(data.values, data.cols, {
      scale: data.scale ?? "max", diverging: isDiverging(name), codes, peak: data.peak ?? null,
    }),
  };
}

function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

customElements.define("matrix-view", MatrixView);
