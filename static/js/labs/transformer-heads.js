/**
 * Layers × heads at a glance: a small picture of every attention map, to choose one from.
 * Used live while a run trains (one snapshot) and in the step view (one trace).
 */

import { entropy } from "core/arithmetic";
import { h } from "core/dom";
import { short } from "core/format";
import { t } from "core/i18n";
import { CELL, levels, ramp } from "core/scales";
import { onTheme } from "core/theme";

export class HeadGrid {
  /** `onPick(layer, head)` is called for a click or Enter on a thumbnail. */
  constructor(host, { onPick }) {
    this.host = host;
    this.onPick = onPick;
    this.cells = [];
    host.classList.add("head-grid");
    onTheme(() => this.colours && this.#paint());
  }

  /** `at(layer, head)` gives the T × T weights as a Float32Array, row by row. */
  show({ layers, heads, tokens, at }) {
    if (this.layers !== layers || this.heads !== heads) this.#build(layers, heads);
    this.tokens = tokens;
    this.at = at;
    this.#paint();
  }

  choose(layer, head) {
    this.chosen = { layer, head };
    for (const cell of this.cells) {
      cell.button.setAttribute("aria-pressed", String(cell.layer === layer && cell.head === head));
    }
  }

  #build(layers, heads) {
    Object.assign(this, { layers, heads, cells: [] });
    this.host.replaceChildren();
    const many = heads > 8;
    this.host.style.setProperty("--heads", String(heads));
    this.host.classList.toggle("many", many);
    this.host.append(h("span"), ...Array.from({ length: heads }, (_, i) => h("span", { class: "head-name" }, many ? String(i + 1) : `H${i + 1}`)));
    for (let layer = 0; layer < layers; layer += 1) {
      this.host.append(h("span", { class: "head-name" }, `L${layer + 1}`));
      for (let head = 0; head < heads; head += 1) this.#thumb(layer, head);
    }
    if (this.chosen) this.choose(this.chosen.layer, this.chosen.head);
  }

  #thumb(layer, head) {
    const canvas = h("canvas");
    const button = h("button", {
      class: "head-thumb", type: "button", "aria-pressed": "false",
      onclick: () => this.onPick(layer, head),
    }, canvas);
    this.host.append(button);
    this.cells.push({ layer, head, canvas, button });
  }

  #paint() {
    this.colours = ramp("attention", this.host);
    const n = this.tokens;
    const image = new ImageData(n, n);
    const pixels = new Uint32Array(image.data.buffer);
    for (const { layer, head, canvas, button } of this.cells) {
      const weights = this.at(layer, head);
      if (!weights) continue;
      const shades = levels(weights, n, { scale: "row" });
      for (let i = 0; i < pixels.length; i += 1) {
        pixels[i] = i % n > Math.floor(i / n) ? 0 : this.colours[shades[i]];
      }
      if (canvas.width !== n) canvas.width = canvas.height = n;
      canvas.getContext("2d").putImageData(image, 0, 0);
      button.title = describe(layer, head, weights, n);
      button.setAttribute("aria-label", button.title);
    }
  }
}

/** "Layer 1, head 2: mean entropy 0.97, 31 % on the first token" */
function describe(layer, head, weights, n) {
  let spread = 0;
  let first = 0;
  for (let row = 0; row < n; row += 1) {
    spread += entropy(weights.subarray(row * n, row * n + n)).value / n;
    first += weights[row * n] / n;
  }
  return t("Layer {layer}, head {head}: mean entropy {entropy}, {first} % on the first token", {
    layer: layer + 1, head: head + 1, entropy: short(spread, 3), first: Math.round(100 * first),
  });
}

/** Codes for a causal map: the future is masked. */
export function causal(n) {
  return Uint8Array.from({ length: n * n }, (_, i) => (i % n > Math.floor(i / n) ? CELL.masked : CELL.value));
}
