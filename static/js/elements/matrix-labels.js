/**
 * The names along a matrix on canvas. All are drawn where they fit, single glyphs alternating between
 * two lines if need be; otherwise dots mark where some are left out.
 */

import { cellBox, font, LABEL, TIGHT, visible, ZIG_X, ZIG_Y } from "elements/matrix-paint";

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
  paintGaps(ctx, theme, named, L.cellH, (at) => [L.left - 10, L.top + at * L.cellH - scroll.y]);
  ctx.restore();
  paintColumns(ctx, m, L, theme, scroll, v, lit.col);
}

/** Glyphs that hang below the line (␣) are raised to their row's middle, off the next row's label. */
function lift(ctx, text) {
  if (text !== "␣") return 0;
  const box = ctx.measureText(text);
  return (box.actualBoundingBoxAscent - box.actualBoundingBoxDescent) / 2;
}

/** A dot wherever labels are left out between two: without it, what remains reads as another sentence. */
function paintGaps(ctx, theme, named, size, place) {
  ctx.fillStyle = theme.ink2;
  named.slice(1).forEach((index, i) => {
    const apart = index - named[i];
    if (apart < 2 || apart * size < LABEL + 2) return;
    const [x, y] = place((index + named[i] + 1) / 2); // in cells from the first
    ctx.fillRect(Math.round(x) - 0.75, Math.round(y) - 0.75, 1.5, 1.5);
  });
}

function paintColumns(ctx, m, L, theme, scroll, v, lit) {
  const named = labelled(v.c0, v.c1, L.colStep, lit);
  const inView = (x) => x >= L.left && x <= L.left + L.viewW;
  if (!L.counted) paintGaps(ctx, theme, named, L.cellW, (at) => [L.left + at * L.cellW - scroll.x, L.top - 8]);
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
