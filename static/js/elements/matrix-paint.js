/**
 * Geometry and drawing of a matrix on canvas. No DOM beyond the contexts it gets, so that the
 * layout can be reasoned about by itself: `layout` decides sizes, `paintCells`, `paintLabels` and
 * `paintMarks` draw, `cellAt` and `cellBox` translate between pixels and cells.
 */

import { CELL, css } from "core/scales";
import { ROLES } from "core/theme";

const GAP_FROM = 7; // px a cell: smaller cells are drawn without gaps, through ImageData
const LABEL = 12; // px, the smallest type on the page
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
  const left = m.rowLabels.length ? Math.ceil(rowWidth) + 10 : 2;
  const counted = m.colLabels.length > 0 && m.colLabels.every((text) => /^\d{1,4}$/.test(text));
  const short = colWidth <= 14 || counted; // numbers stay upright and are thinned to round steps
  const top = !m.colLabels.length ? 2 : short ? LABEL + 8 : Math.ceil(colWidth * RISE) + 14;
  const right = m.colLabels.length && !short ? Math.ceil(colWidth * RISE * 0.7) : 2;
  const roomX = Math.max(40, width - left - right);
  const roomY = Math.max(40, height - top - 2);
  let cellW = Math.min(roomX / m.cols, maxCell);
  let cellH = Math.min(roomY / m.rows, maxCell);
  if (square) cellW = cellH = Math.max(minCell, Math.min(cellW, cellH));
  cellW = Math.max(minCell, cellW) * zoom;
  cellH = Math.max(minCell, cellH) * zoom;
  // Whole pixels look crisp and keep gaps even, as long as they do not cost the fit.
  if (cellW >= GAP_FROM) cellW = Math.floor(cellW);
  if (cellH >= GAP_FROM) cellH = Math.floor(cellH);
  const contentW = cellW * m.cols;
  const contentH = cellH * m.rows;
  return {
    left, top, right, cellW, cellH, contentW, contentH, short,
    viewW: Math.min(contentW, roomX),
    viewH: Math.min(contentH, roomY),
    rowStep: Math.max(1, Math.ceil((LABEL + 1) / cellH)),
    colStep: counted ? roundStep(colWidth + 6, cellW) : Math.max(1, Math.ceil((short ? LABEL - 1 : LABEL + 3) / cellW)),
  };
}

/** The smallest of 1, 2, 5, 10, 20, 50 … columns that leaves `room` px for each label. */
function roundStep(room, cellW) {
  for (let power = 1; ; power *= 10) {
    for (const step of [power, 2 * power, 5 * power]) if (step * cellW >= room) return step;
  }
}

let fonts = null;

function font(bold) {
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

function cellBox(L, scroll, row, col) {
  return {
    x: L.left + col * L.cellW - scroll.x,
    y: L.top + row * L.cellH - scroll.y,
    w: L.cellW,
    h: L.cellH,
  };
}

/** Rows and columns that are at least partly in view. */
function visible(L, scroll, m) {
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
        ctx.fillRect(box.x, box.y, L.cellW * (end - col), L.cellH);
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

/** Row and column labels; the marked ones bold, in their role's colour, and never thinned away. */
export function paintLabels(ctx, m, L, theme, scroll, marks) {
  const v = visible(L, scroll, m);
  ctx.textBaseline = "middle";
  const lit = { row: new Map(), col: new Map() };
  for (const mark of marks) {
    if (mark.row !== undefined) lit.row.set(mark.row, theme.roles[mark.rowRole ?? mark.role] ?? theme.ink);
    if (mark.col !== undefined) lit.col.set(mark.col, theme.roles[mark.colRole ?? mark.role] ?? theme.ink);
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, L.top - 4, L.left, L.viewH + 8);
  ctx.clip();
  ctx.textAlign = "right";
  for (const row of labelled(v.r0, v.r1, L.rowStep, lit.row)) {
    if (!m.rowLabels[row]) continue;
    const box = cellBox(L, scroll, row, 0);
    ctx.font = font(lit.row.has(row));
    ctx.fillStyle = lit.row.get(row) ?? theme.ink2;
    ctx.fillText(fit(ctx, m.rowLabels[row], L.left - 8), L.left - 7, box.y + L.cellH / 2 + 0.5);
  }
  ctx.restore();
  paintColumns(ctx, m, L, theme, scroll, v, lit.col);
}

function paintColumns(ctx, m, L, theme, scroll, v, lit) {
  for (const col of labelled(v.c0, v.c1, L.colStep, lit)) {
    if (!m.colLabels[col]) continue;
    const x = L.left + (col + 0.5) * L.cellW - scroll.x;
    if (x < L.left || x > L.left + L.viewW) continue;
    ctx.save();
    ctx.font = font(lit.has(col));
    ctx.fillStyle = lit.get(col) ?? theme.ink2;
    ctx.translate(x, L.top - 6);
    if (L.short) {
      ctx.textAlign = "center";
      ctx.fillText(m.colLabels[col], 0, -5);
    } else {
      ctx.rotate(-Math.PI / 4);
      ctx.textAlign = "left";
      ctx.fillText(fit(ctx, m.colLabels[col], 84), 0, 0);
    }
    ctx.restore();
  }
}

/** Every `step`-th index, plus the lit ones; neighbours of a lit one make room for it. */
function labelled(from, to, step, lit) {
  const out = [];
  for (let i = from; i < to; i += 1) {
    if (lit.has(i)) out.push(i);
    else if (i % step === 0 && ![...lit.keys()].some((j) => Math.abs(i - j) < step)) out.push(i);
  }
  return out;
}

function fit(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && ctx.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
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

function outline(ctx, x, y, w, h, colour, width) {
  ctx.strokeStyle = colour ?? "currentColor";
  ctx.lineWidth = width;
  // Tiny cells get a ring around them instead of a stroke that would hide them.
  const grow = Math.min(w, h) < 6 ? 2 : 0;
  ctx.beginPath();
  ctx.roundRect(x - grow, y - grow, w + 2 * grow, h + 2 * grow, 2);
  ctx.stroke();
}

/** Colours of a ramp and of everything around it, read from the page's custom properties. */
export function theme(rampColours, colour) {
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
