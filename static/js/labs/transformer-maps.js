/** Attention of one snapshot of a run: the grid of all heads, the chosen one large, its words. */

import { entropy } from "core/arithmetic";
import { chip, clear, h, strong } from "core/dom";
import { full, glyphs, percent, short, sig } from "core/format";
import { parts, t } from "core/i18n";
import { state } from "core/view-state";
import "elements/matrix-view";
import { causal, HeadGrid } from "labs/transformer-heads";

/** An address may name a place that this model hasn't. */
const within = (index, size) => Math.max(0, Math.min(index, size - 1));
const inside = (index, size) => index !== null && index >= 0 && index < size;

export class Maps {
  constructor({ grid, large, why }) {
    this.why = why;
    this.grid = new HeadGrid(grid, { onPick: (layer, head) => state.set({ layer, head }) });
    this.view = large.appendChild(h("matrix-view"));
    this.name = h("p", { class: "caption" });
    large.prepend(this.name);
    this.hovered = null;
    this.view.addEventListener("cell-hover", (event) => {
      this.hovered = event.detail;
      this.#words();
    });
    this.view.addEventListener("cell-select", (event) => {
      state.set({ row: event.detail?.row ?? null, col: event.detail?.col ?? null });
      this.#words();
    });
    this.#words();
  }

  reset() {
    Object.assign(this, { maps: null, weights: null, hovered: null, probe: null });
    this.view.selected = null;
    this.#words();
  }

  show(maps, step) {
    Object.assign(this, { maps, step });
    this.refresh();
  }

  refresh() {
    const { maps } = this;
    if (!maps) return;
    const n = maps.tokens;
    const size = n * n;
    const at = (layer, head) => maps.data.subarray((layer * maps.heads + head) * size, (layer * maps.heads + head + 1) * size);
    const layer = within(state.int("layer", 0), maps.layers);
    const head = within(state.int("head", 0), maps.heads);
    this.grid.show({ layers: maps.layers, heads: maps.heads, tokens: n, at });
    this.grid.choose(layer, head);
    const labels = (this.probe ?? []).slice(0, n).map(glyphs);
    this.name.textContent = t("Layer {layer}, head {head} on the probe sentence", { layer: layer + 1, head: head + 1 });
    this.weights = at(layer, head);
    this.labels = labels;
    this.view.data = {
      rows: n, cols: n, values: this.weights, codes: causal(n), masked: t("masked: the future"), ramp: "attention", scale: "row", maxHeight: 470, maxCell: 22,
      title: t("attention weights"), rowLabels: labels, colLabels: labels,
      rowTitle: t("query (looks)"), colTitle: t("key (is looked at)"),
    };
    const [row, col] = [state.int("row"), state.int("col")];
    this.view.selected = inside(row, n) && inside(col, n) ? { row, col } : null;
    this.#words();
  }

  #words() {
    const cell = this.hovered ?? this.view.selected;
    if (!cell || !this.weights) {
      clear(this.why, h("h3", null, t("How to read this")),
        h("ul", { class: "why-guide" },
          h("li", null, t("Loss is the surprise at the true next token, in nats. e to the loss is how many tokens it hesitates between.")),
          h("li", null, t("The dotted line is guessing: all tokens equally likely.")),
          h("li", null, t("Each small square is one head. Rows are tokens that look, columns are tokens that are looked at. The stronger the colour, the more attention.")),
          h("li", null, t("Drag the bar below through the snapshots, or press Replay, to see the heads form.")),
          h("li", null, t("Click a head to enlarge it. Hover a cell to see its weight, click to lock it, Esc to unlock."))));
      return;
    }
    const { row, col } = cell;
    const n = this.maps.tokens;
    const line = this.weights.subarray(row * n, row * n + n);
    const weight = line[col];
    const { value, limit } = entropy(line.subarray(0, row + 1));
    clear(this.why, h("h3", null, t("This cell")),
      h("output", { class: "why-value", title: full(weight) }, col > row ? t("masked") : sig(weight)),
      h("p", { class: "caption" }, t("row {n}", { n: row }), " ", chip(this.labels[row] ?? "", "query"), " → ", t("column {n}", { n: col }), " ", chip(this.labels[col] ?? "", "key")),
      h("p", null, col > row
        ? t("This key comes later in the text: a decoder may not look ahead.")
        : parts("At step {step}, {q} gives {w} of its attention to {k}.", { step: String(this.step), q: chip(this.labels[row] ?? "", "query"), k: chip(this.labels[col] ?? "", "key"), w: strong(percent(weight)) })),
      h("p", { class: "caption" }, t("Its attention has entropy {e}, of at most {max}.", { e: short(value, 3), max: short(Math.log(row + 1), 3) })),
      h("p", { class: "caption" }, t("Pause the run or let it end, then step through the model to see how this number is made.")));
  }
}
