/**
 * Geometry and drawing of a matrix on canvas. No DOM beyond the contexts it gets, so that the
 * layout can be reasoned about by itself: `layout` decides sizes, `paintCells` and `paintMarks` draw,
 * `cellAt` and `cellBox` translate between pixels and cells. Labels: matrix-labels.js.
 */

import { CELL, css } from "core/scales";
import { colour, ROLES } from "core/theme";

const GAP_FROM = 7; // px a cell: smaller cells are drawn without gaps, through ImageData
export const LABEL = 12; // px, the smallest type on the page
export const ZIG_X = 10; // px from one line of alternating labels to the other
export const ZIG_Y = 13;
export const TIGHT = 7; // px a column: single glyphs still stand in one line, the wide ones condensed
const RISE = Math.SQRT1_2; // column labels lean by 45°

/**
 * Sizes for a `rows` × `cols` matrix in `width` × `height` px.
 * With `square`, cells are squares; otherwise wide matrices keep readable rows and narrow columns.
 */
export function layout(ctx, m, { width, height, zoom = 1, maxCell = 26, minCell = 3, square = true }) {
  fonts = null; // the type may have changed with the theme or the projector mode
  ctx.font = font(false);
  const widest = (labels) => Math.max(0, ...labels.map((text) => ctx.measureText(text).width));
  const rowWidth = Math.min(widest(m.rowLabels), 84);
  const colWidth = Math.min(widest(m.colLabels), 84);
  const counted = m.colLabels.length > 0 && m.colLabels.every((text) => /^\d{1,4}$/.test(text));
  const short = colWidth <= 14 || counted; // numbers stay upright and are thinned to round steps
  const fit = ({ zigRow, zigCol }) => {
    const left = m.rowLabels.length ? Math.ceil(rowWidth) + 10 + (zigRow ? ZIG_X : 0) : 2;
    const top = !m.colLabels.length ? 2 : short ? LABEL + 8 + (zigCol ? ZIG_Y : 0) : Math.ceil(colWidth * RISE) + 14;
    const right = !m.colLabels.length ? 2 : short ? (counted ? 7 : 2) : Math.ceil(colWidth * RISE * 0.7);
    const roomX = Math.max(40, width - left - right);
    const roomY = Math.max(40, height - top - 2);
    let cellW = Math.min(roomX / m.cols, maxCell);
    let cellH = Math.min(roomY / m.rows, maxCell);
    if (square) cellW = cellH = Math.max(minCell, Math.min(cellW, cellH));
    cellW = Math.max(minCell, cellW) * zoom;
    cellH = Math.max(minCell, cellH) * zoom;
    // Squares of whole pixels are even; other cells fill the width, and `cellBox` rounds their edges.
    if (square && cellW >= GAP_FROM) cellW = cellH = Math.floor(cellW);
    return { left, top, right, roomX, roomY, cellW, cellH };
  };
  const plain = fit({});
  // Single glyphs that would touch stand alternately in two lines, so that every token is named.
  const glyphs = rowWidth <= 14;
  const zigRow = glyphs && plain.cellH < LABEL - 1 && plain.cellH >= (LABEL - 1) / 2;
  const { cellW: across } = fit({ zigRow });
  const zigCol = short && !counted && across < TIGHT && across >= TIGHT / 2;
  const { left, top, right, roomX, roomY, cellW, cellH } = fit({ zigRow, zigCol });
  const contentW = cellW * m.cols;
  const contentH = cellH * m.rows;
  return {
    left, top, right, cellW, cellH, contentW, contentH, short, counted, zigRow, zigCol,
    viewW: Math.min(contentW, roomX),
    viewH: Math.min(contentH, roomY),
    rowStep: zigRow ? 1 : thinned(glyphs ? LABEL - 1 : LABEL + 1, cellH),
    colStep: counted ? roundStep(colWidth + 6, cellW) : zigCol ? 1 : thinned(short ? TIGHT : LABEL + 3, cellW),
  };
}

/** 1 where every label has `room` px; else as many cells as leave space for a dot between two labels. */
function thinned(room, size) {
  return size >= room ? 1 : Math.ceil(Math.max(room, LABEL + 3) / size);
}

/** The smallest of 1, 2, 5, 10, 20, 50 … columns that leaves `room` px for each label. */
function roundStep(room, cellW) {
  for (let power = 1; ; power *= 10) {
    for (const step of [power, 2 * power, 5 * power]) if (step * cellW >= room) return step;
  }
}

let fonts = null;

export function font(bold) {
  if (!fonts) {
    const family = getComputedStyle(document.body).fontFamily;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    fonts = ["", "650 "].map((weight) => `${weight}${LABEL * rem}px ${family}`);
  }
  return fonts[bold ? 1 : 0];
}

/** Row and column under a point of the canvas, or null. */
export function cellAt(L, scroll, x, y, m) {
  if (x < L.left || y < L.top || x >= L.left + L.viewW || y >= L.top + L.viewH) return null;
  const col = Math.floor((x - L.left + scroll.x) / L.cellW);
  const row = Math.floor((y - L.top + scroll.y) / L.cellH);
  return row < m.rows && col < m.cols && row >= 0 && col >= 0 ? { row, col } : null;
}

export function cellBox(L, scroll, row, col) {
  const [x, w] = edges(col, L.cellW);
  const [y, h] = edges(row, L.cellH);
  return { x: L.left + x - scroll.x, y: L.top + y - scroll.y, w, h };
}

/** Start and size of the `i`-th cell; with gaps, both edges on whole pixels. */
function edges(i, size) {
  if (size < GAP_FROM) return [i * size, size];
  const from = Math.round(i * size);
  return [from, Math.round((i + 1) * size) - from];
}

/** Rows and columns that are at least partly in view. */
export function visible(L, scroll, m) {
  return {
    r0: Math.max(0, Math.floor(scroll.y / L.cellH)),
    r1: Math.min(m.rows, Math.ceil((scroll.y + L.viewH) / L.cellH)),
    c0: Math.max(0, Math.floor(scroll.x / L.cellW)),
    c1: Math.min(m.cols, Math.ceil((scroll.x + L.viewW) / L.cellW)),
  };
}

function clip(ctx, L) {
  ctx.beginPath();
  ctx.rect(L.left - 1, L.top - 1, L.viewW + 2, L.viewH + 2);
  ctx.clip();
}

/** A small tile for each special value: lines for masked, crosses for NaN, chevrons for ±∞, dots for none. */
export function hatch(ctx, code, theme) {
  const size = code === CELL.masked ? 6 : 8;
  const tile = new OffscreenCanvas(size, size);
  const t = tile.getContext("2d");
  t.fillStyle = theme.hatchGround;
  t.fillRect(0, 0, size, size);
  t.strokeStyle = code === CELL.masked || code === CELL.missing ? theme.hatch : theme.mark;
  t.fillStyle = t.strokeStyle;
  t.lineWidth = 1;
  t.beginPath();
  if (code === CELL.masked) {
    for (const shift of [-size, 0, size]) {
      t.moveTo(shift, size);
      t.lineTo(shift + size, 0);
    }
  } else if (code === CELL.nan) {
    t.moveTo(1, 1);
    t.lineTo(7, 7);
    t.moveTo(7, 1);
    t.lineTo(1, 7);
  } else if (code === CELL.posinf || code === CELL.neginf) {
    const up = code === CELL.posinf ? 1 : -1;
    t.moveTo(1, 4 + 2 * up);
    t.lineTo(4, 4 - 2 * up);
    t.lineTo(7, 4 + 2 * up);
  } else {
    t.rect(3, 3, 1, 1);
    t.fill();
  }
  t.stroke();
  return ctx.createPattern(tile, "repeat");
}

/** Is the cell drawn yet? While a stage is being played, only part of it is. */
function shown(reveal, row, col) {
  if (!reveal) return true;
  if (row === reveal.row) return col < reveal.count;
  return row < reveal.rows;
}

/** The cells. `m.levels` are ramp indices, `m.codes` special values, `reveal` what is computed so far. */
export function paintCells(ctx, m, L, theme, scroll, reveal) {
  ctx.save();
  clip(ctx, L);
  const v = visible(L, scroll, m);
  if (L.cellW >= GAP_FROM && L.cellH >= GAP_FROM) paintTiles(ctx, m, L, theme, scroll, reveal, v);
  else paintPixels(ctx, m, L, theme, scroll, reveal, v);
  paintSpecial(ctx, m, L, theme, scroll, reveal, v);
  paintGroups(ctx, m, L, theme, scroll);
  ctx.restore();
}

function paintTiles(ctx, m, L, theme, scroll, reveal, v) {
  const round = Math.min(3, L.cellW / 6);
  for (let row = v.r0; row < v.r1; row += 1) {
    for (let col = v.c0; col < v.c1; col += 1) {
      const i = row * m.cols + col;
      if (m.codes[i] !== CELL.value || !shown(reveal, row, col)) continue;
      const box = cellBox(L, scroll, row, col);
      ctx.fillStyle = theme.css[m.levels[i]];
      ctx.beginPath();
      ctx.roundRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1, round);
      ctx.fill();
      if (theme.grid) {
        ctx.strokeStyle = theme.grid;
        ctx.lineWidth = 0.75;
        ctx.stroke();
      }
    }
  }
}

function paintPixels(ctx, m, L, theme, scroll, reveal, v) {
  const [w, h] = [v.c1 - v.c0, v.r1 - v.r0];
  if (w <= 0 || h <= 0) return;
  const image = new ImageData(w, h);
  const out = new Uint32Array(image.data.buffer);
  for (let row = v.r0; row < v.r1; row += 1) {
    for (let col = v.c0; col < v.c1; col += 1) {
      const i = row * m.cols + col;
      if (m.codes[i] !== CELL.value || !shown(reveal, row, col)) continue;
      out[(row - v.r0) * w + (col - v.c0)] = theme.packed[m.levels[i]];
    }
  }
  const tile = new OffscreenCanvas(w, h);
  tile.getContext("2d").putImageData(image, 0, 0);
  const at = cellBox(L, scroll, v.r0, v.c0);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(tile, at.x, at.y, w * L.cellW, h * L.cellH);
  ctx.strokeStyle = theme.line;
  ctx.lineWidth = 1;
  ctx.strokeRect(L.left - 0.5, L.top - 0.5, L.viewW + 1, L.viewH + 1);
}

/** Runs of equal special cells in a row become one hatched rectangle. */
function paintSpecial(ctx, m, L, theme, scroll, reveal, v) {
  const patterns = new Map();
  const pattern = (code) => {
    if (!patterns.has(code)) patterns.set(code, hatch(ctx, code, theme));
    return patterns.get(code);
  };
  for (let row = v.r0; row < v.r1; row += 1) {
    let col = v.c0;
    while (col < v.c1) {
      const code = codeAt(m, reveal, row, col);
      let end = col + 1;
      while (end < v.c1 && codeAt(m, reveal, row, end) === code) end += 1;
      if (code !== CELL.value) {
        const box = cellBox(L, scroll, row, col);
        ctx.fillStyle = pattern(code);
        const last = cellBox(L, scroll, row, end - 1);
        ctx.fillRect(box.x, box.y, last.x + last.w - box.x, box.h);
      }
      col = end;
    }
  }
}

function codeAt(m, reveal, row, col) {
  return shown(reveal, row, col) ? m.codes[row * m.cols + col] : CELL.missing;
}

/** Thin lines between groups of columns (heads in a concatenation). */
function paintGroups(ctx, m, L, theme, scroll) {
  if (!m.groups?.length) return;
  ctx.strokeStyle = theme.ink2;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const col of m.groups) {
    const x = Math.round(L.left + col * L.cellW - scroll.x) + 0.5;
    ctx.moveTo(x, L.top);
    ctx.lineTo(x, L.top + L.viewH);
  }
  ctx.stroke();
}

/** Outlines: whole rows, whole columns, single cells. */
export function paintMarks(ctx, m, L, theme, scroll, marks) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(L.left - 2, L.top - 2, L.viewW + 4, L.viewH + 4);
  ctx.clip();
  for (const mark of marks) {
    const { row, col } = mark;
    const whole = !mark.cell;
    if (whole && row !== undefined) {
      const box = cellBox(L, scroll, row, 0);
      outline(ctx, L.left, box.y, L.viewW, box.h, theme.roles[mark.rowRole ?? mark.role], 1.75);
    }
    if (whole && col !== undefined) {
      const box = cellBox(L, scroll, 0, col);
      outline(ctx, box.x, L.top, box.w, L.viewH, theme.roles[mark.colRole ?? mark.role], 1.75);
    }
  }
  for (const mark of marks) {
    if (mark.row === undefined || mark.col === undefined) continue;
    const box = cellBox(L, scroll, mark.row, mark.col);
    outline(ctx, box.x, box.y, box.w, box.h, theme.roles[mark.role ?? "accent"], mark.locked ? 3 : 2);
  }
  ctx.restore();
}

function outline(ctx, x, y, w, h, stroke, width) {
  ctx.strokeStyle = stroke ?? "currentColor";
  ctx.lineWidth = width;
  // Tiny cells get a ring around them instead of a stroke that would hide them.
  const grow = Math.min(w, h) < 6 ? 2 : 0;
  ctx.beginPath();
  ctx.roundRect(x - grow, y - grow, w + 2 * grow, h + 2 * grow, 2);
  ctx.stroke();
}

/** Colours of a ramp and of everything around it, as the page's theme has them. */
export function theme(rampColours) {
  return {
    packed: rampColours,
    css: Array.from(rampColours, css),
    line: colour("--line"),
    grid: colour("--ramp-grid"),
    ink: colour("--ink"),
    ink2: colour("--ink-2"),
    hatch: colour("--ramp-hatch"),
    hatchGround: colour("--ramp-hatch-bg"),
    mark: colour("--ramp-mark"),
    roles: Object.fromEntries([...ROLES, "accent"].map((role) => [role, colour(`--${role}`)])),
  };
}
