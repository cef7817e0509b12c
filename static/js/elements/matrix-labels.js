/**
 * The names along a matrix on canvas. All are drawn where they fit, single glyphs alternating between
 * two lines if need be; otherwise a dot stands for each that is left out.
 */

import { cellBox, font, LABEL, TIGHT, visible, ZIG_X, ZIG_Y } from "elements/matrix-paint";

const DOT_FROM = 3; // px a cell: from here on, a dot stands for every label that is left out

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
  const named = labelled(v.r0, v.r1, L.rowStep, lit.row);
  for (const row of named) {
    if (!m.rowLabels[row]) continue;
    const box = cellBox(L, scroll, row, 0);
    ctx.font = font(lit.row.has(row));
    ctx.fillStyle = lit.row.get(row) ?? theme.ink2;
    const x = L.left - 7 - (L.zigRow && row % 2 ? ZIG_X : 0);
    ctx.fillText(fit(ctx, m.rowLabels[row], x - 1), x, box.y + box.h / 2 + 0.5 + lift(ctx, m.rowLabels[row]));
  }
  if (L.cellH >= DOT_FROM) {
    paintSkipped(ctx, theme, skipped(v.r0, v.r1, named, m.rowLabels, 0.6 * LABEL / L.cellH), (row) => [L.left - 10, cellBox(L, scroll, row, 0).y + L.cellH / 2]);
  }
  ctx.restore();
  paintColumns(ctx, m, L, theme, scroll, v, lit.col);
}

/** Glyphs that hang below the line (␣) are raised to their row's middle, off the next row's label. */
function lift(ctx, text) {
  if (text !== "␣") return 0;
  const box = ctx.measureText(text);
  return (box.actualBoundingBoxAscent - box.actualBoundingBoxDescent) / 2;
}

/** Indices without a label though they have a name, at least `room` cells off the labels that are there. */
function skipped(from, to, named, labels, room) {
  const out = [];
  let next = 0; // into `named`, which is in order
  for (let i = from; i < to; i += 1) {
    while (next < named.length && named[next] < i) next += 1;
    const near = Math.min((named[next] ?? Infinity) - i, i - (named[next - 1] ?? -Infinity));
    if (labels[i] && near > 0 && near >= room) out.push(i);
  }
  return out;
}

/** A dot for each label that is left out: without it, what remains would read as another sentence. */
function paintSkipped(ctx, theme, indices, place) {
  ctx.fillStyle = theme.ink2;
  for (const index of indices) {
    const [x, y] = place(index);
    ctx.fillRect(Math.round(x) - 0.75, Math.round(y) - 0.75, 1.5, 1.5);
  }
}

function paintColumns(ctx, m, L, theme, scroll, v, lit) {
  const named = labelled(v.c0, v.c1, L.colStep, lit);
  const inView = (x) => x >= L.left && x <= L.left + L.viewW;
  if (!L.counted && L.cellW >= DOT_FROM) {
    const middle = (col) => L.left + (col + 0.5) * L.cellW - scroll.x;
    paintSkipped(ctx, theme, skipped(v.c0, v.c1, named, m.colLabels, 0.6 * LABEL / L.cellW).filter((col) => inView(middle(col))), (col) => [middle(col), L.top - 8]);
  }
  for (const col of named) {
    if (!m.colLabels[col]) continue;
    const x = L.left + (col + 0.5) * L.cellW - scroll.x;
    if (!inView(x)) continue;
    ctx.save();
    ctx.font = font(lit.has(col));
    ctx.fillStyle = lit.get(col) ?? theme.ink2;
    ctx.translate(x, L.top - 6);
    if (L.short) {
      ctx.textAlign = "center";
      ctx.fillText(m.colLabels[col], 0, -5 - (L.zigCol && col % 2 ? ZIG_Y : 0), L.counted ? undefined : Math.max(TIGHT, L.cellW) * (L.zigCol ? 2 : L.colStep));
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
