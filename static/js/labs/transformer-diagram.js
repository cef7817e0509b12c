/**
 * The chosen architecture as a diagram that matches the computation: where the norms stand, where
 * the residual branches, and how many parameters each part has.
 */

import { append, clear, h, svg } from "core/dom";
import { compact, count } from "core/format";
import { t, tn } from "core/i18n";

/** Trainable numbers of each part; the same sums as the server's, from the same letters. */
function parameterParts({ layers, d_model: c, d_ff, block, norm, positions }, vocabulary) {
  const f = d_ff || 4 * c;
  return {
    token: vocabulary * c,
    position: positions === "learned" ? block * c : 0,
    attention: 4 * (c * c + c),
    feedForward: c * f + f + f * c + c,
    norm: 2 * c,
    finalNorm: norm === "pre" ? 2 * c : 0,
    unembed: c * vocabulary + vocabulary,
    layers,
  };
}

export function parameterCount(values, vocabulary) {
  const p = parameterParts(values, vocabulary);
  return p.token + p.position + p.layers * (p.attention + p.feedForward + 2 * p.norm) + p.finalNorm + p.unembed;
}

const BOX = 232;
const MID = 200;
const SKIP = 58;

/** Draws into `host`, top to bottom: text in, probabilities out. */
export function diagram(host, values, vocabulary) {
  const p = parameterParts(values, vocabulary);
  const pre = values.norm === "pre";
  const c = values.d_model;
  const art = svg("g");
  let y = 8;
  const box = (label, note, role, params) => {
    append(art,
      svg("rect", { x: MID - BOX / 2, y, width: BOX, height: 34, rx: 9, class: `diagram-box ${role}` }),
      svg("text", { x: MID, y: y + 22, class: "diagram-label" }, label),
      svg("text", { x: MID + BOX / 2 + 34, y: y + 15, class: "diagram-note" }, note),
      params ? svg("text", { x: MID + BOX / 2 + 34, y: y + 31, class: "diagram-count" }, t("{n} parameters", { n: compact(params) })) : null);
    y += 34;
  };
  const flow = (length = 16) => {
    append(art, svg("path", { d: `M${MID} ${y}V${y + length}`, class: "diagram-flow" }));
    y += length;
  };
  const sum = (from) => {
    append(art,
      svg("path", { d: `M${MID} ${from}H${SKIP}V${y + 11}H${MID - 11}`, class: "diagram-skip", "marker-end": "url(#diagram-head)" }),
      svg("circle", { cx: MID, cy: y + 11, r: 11, class: "diagram-sum" }),
      svg("path", { d: `M${MID - 5} ${y + 11}h10M${MID} ${y + 6}v10`, class: "diagram-flow" }));
    y += 22;
  };
  const part = (draw) => {
    flow(12);
    const from = y - 4;
    if (pre) {
      box(t("Norm"), "", "residual");
      flow(8);
    }
    draw();
    flow(8);
    sum(from);
    if (!pre) {
      flow(8);
      box(t("Norm"), "", "residual");
    }
  };
  box(t("Token embedding + position"), t("{v} tokens × {c} numbers", { v: count(vocabulary), c }), "value", p.token + p.position);
  flow(10);
  const top = y;
  part(() => box(tn("Attention, {n} head", "Attention, {n} heads", values.heads), t("{n} × {d} numbers a token", { n: values.heads, d: c / values.heads }), "attention", p.attention));
  part(() => box(t("Feed-forward"), `${c} → ${values.d_ff || 4 * c} → ${c}`, "key", p.feedForward));
  flow(8);
  append(art,
    svg("rect", { x: 14, y: top + 4, width: MID + BOX / 2 + 4, height: y - top - 4, rx: 13, class: "diagram-block" }),
    svg("text", { x: 24, y: top + 26, class: "diagram-times" }, `× ${values.layers}`));
  flow(10);
  if (pre) {
    box(t("Norm"), "", "residual");
    flow(10);
  }
  box(t("Unembedding, softmax"), t("a probability for each of {v} tokens", { v: count(vocabulary) }), "query", p.unembed);
  const head = svg("defs", {}, svg("marker", { id: "diagram-head", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto" }, svg("path", { d: "M0 0 6 3 0 6z", class: "diagram-tip" })));
  const total = parameterCount(values, vocabulary);
  clear(host,
    svg("svg", { viewBox: `0 0 590 ${y + 6}`, class: "diagram", role: "img", "aria-label": t("{layers} layers, {heads} heads, {total} parameters", { layers: values.layers, heads: values.heads, total: count(total) }) }, head, art),
    h("p", { class: "diagram-total" }, h("strong", { class: "number", "data-testid": "parameters" }, count(total)), " ", t("parameters")));
}

/** What the form's own check says: heads share d_model's columns evenly. With the nearest that do. */
export function headProblems({ d_model: d, heads }, { d_model: width, heads: count }) {
  if (!(Number.isInteger(d) && Number.isInteger(heads) && heads > 0) || d % heads === 0) return [];
  const detail = t("{heads} heads can't share {d_model} columns evenly.", { heads, d_model: d });
  const inside = (list, { minimum, maximum }) => list.filter((n) => n >= minimum && n <= maximum);
  const divisors = Array.from({ length: count.maximum }, (_, i) => i + 1).filter((n) => d % n === 0);
  const near = [divisors.findLast((n) => n < heads), divisors.find((n) => n > heads)];
  const below = Math.floor(d / heads) * heads;
  return [
    { pointer: "/d_model", detail, nearest: inside([below, below + heads], width) },
    { pointer: "/heads", detail, nearest: inside(near, count) },
  ];
}
