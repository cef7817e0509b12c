/** How one query spreads its attention, as bars; and the line from 0 to 1 that a token is drawn from. */

import { entropy } from "core/arithmetic";
import { chip, clear, h, strong } from "core/dom";
import { glyphs, percent, short } from "core/format";
import { parts, t } from "core/i18n";

const UNIFORM = 0.95;
const NARROW = 0.005; // of the line

/** `weights` is one row of attention, of which the first `row + 1` are visible. */
export function spread(host, trace, { weights, row, col, onHover, onSelect }) {
  const visible = Array.from(weights.slice(0, row + 1));
  const { value, limit } = entropy(visible);
  const top = Math.max(...visible, 1e-9);
  const even = visible.length > 2 && value > UNIFORM * Math.log(visible.length);
  clear(host,
    h("p", { class: "caption" },
      parts("how {token} spreads its attention · entropy {entropy} of ln {n} = {limit}", {
        token: chip(trace.labels[row], "query"), entropy: strong(short(value, 3)),
        n: String(visible.length), limit: short(Math.log(visible.length), 3),
      }),
      even ? [" · ", t("almost uniform")] : limit && value < 0.1 ? [" · ", t("almost all on one token")] : null),
    h("div", { class: "spread-bars", role: "group", "aria-label": t("attention weights"), onmouseleave: () => onHover(null) }, visible.map((weight, key) => bar(weight, key))));

  function bar(weight, key) {
    const fill = h("span", { class: "spread-fill" });
    fill.style.setProperty("--share", String(weight / top));
    return h("button", {
      class: `spread-bar${key === col ? " current" : ""}`, type: "button",
      title: `${trace.labels[key]} ${short(weight)}`, "aria-label": `${trace.labels[key]} ${key}: ${short(weight)}`,
      onmouseenter: () => onHover(key), onfocus: () => onHover(key), onblur: () => onHover(null), onclick: () => onSelect(key),
    }, h("span", { class: "spread-room" }, fill), h("span", { class: "spread-name" }, trace.labels[key]));
  }
}

/** The unit line: each token's share is its probability, the draw is a point on it. */
export function drawLine(host, trace, { probs, attrs }) {
  clear(host,
    h("p", { class: "caption" }, t("the line from 0 to 1: each token owns a stretch as long as its probability; the draw {u} falls into one", { u: short(attrs.draw) })),
    h("div", { class: "draw-line" },
      stretches(probs, attrs.chosen).map(({ ids, share }) => {
        const alone = ids.length === 1;
        const name = alone ? glyphs(trace.meta.vocab[ids[0]]) : t("{n} unlikely tokens", { n: ids.length });
        const part = h("span", { class: `draw-part${alone ? "" : " many"}${ids[0] === attrs.chosen ? " chosen" : ""}`, title: `${name} ${percent(share)}` }, alone && share > 0.025 ? name : "");
        part.style.flexGrow = String(share);
        return part;
      }),
      marker(attrs.draw)),
    h("p", { class: "draw-ends caption number" }, h("span", null, "0"), h("span", null, "1")));
}

/** The line's stretches in id order; neighbours too narrow to be seen are drawn as one. */
function stretches(probs, chosen) {
  const out = [];
  let open = null;
  for (const [id, share] of probs.entries()) {
    if (!(share > 0)) continue;
    if (share >= NARROW || id === chosen) {
      open = null;
      out.push({ ids: [id], share });
    } else if (open) {
      open.ids.push(id);
      open.share += share;
    } else {
      open = { ids: [id], share };
      out.push(open);
    }
  }
  return out;
}

function marker(u) {
  const node = h("span", { class: "draw-mark", "aria-hidden": "true" });
  node.style.insetInlineStart = `${100 * u}%`;
  return node;
}
