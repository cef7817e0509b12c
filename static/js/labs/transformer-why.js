/**
 * The right-hand place of the step view: the chosen cell's number, how it is made out of its
 * operands, where those stand (click to walk back), and the same number computed by plain torch.
 */

import { spellProducts } from "core/arithmetic";
import { chip, clear, h } from "core/dom";
import { full, number, short, sig } from "core/format";
import { formula } from "core/formula";
import { t } from "core/i18n";
import { finished, submit } from "core/jobs";
import { explain } from "labs/transformer-explain";
import { AXES } from "labs/transformer-figures";

const FIRST_TERMS = 24;

export class Why {
  /** `onWalk(cell)` is called when the reader follows an operand to where it stands. */
  constructor(host, { onWalk }) {
    this.host = host;
    this.onWalk = onWalk;
    this.turn = 0;
    this.checks = new Map();
  }

  /** With nothing chosen: how to read the figure. */
  guide(step, spec, trace) {
    this.turn += 1;
    const axes = spec ? [AXES[spec.rows], AXES[spec.cols]] : [];
    clear(
      this.host,
      h("h3", null, t("How to read this")),
      h("ul", { class: "why-guide" },
        axes.length && axes[0].title() ? h("li", null, t("Rows: {axis}.", { axis: axes[0].title() })) : null,
        axes.length && axes[1].title() ? h("li", null, t("Columns: {axis}.", { axis: axes[1].title() })) : null,
        h("li", null, t("The panel's own colour is zero; the stronger the colour, the larger the number.")),
        h("li", null, t("Hatched cells hold no number: the legend says why.")),
        h("li", null, t("Hover a cell to preview its arithmetic, click to lock it, Esc to unlock. With the keyboard: Tab to the figure, arrows, Enter.")),
      ),
      this.#formula(step),
      h("p", { class: "caption" }, t("Tokens in this trace: {n}. Numbers are float32, as the model computes them.", { n: trace.tokens.length })),
    );
  }

  /** The arithmetic of `cell`. A later call overtakes an earlier one that still loads. */
  async show(trace, cell, { locked }) {
    this.turn += 1;
    const turn = this.turn;
    let found;
    try {
      found = await explain(trace, cell);
    } catch (error) {
      if (turn !== this.turn) return;
      clear(this.host, h("h3", null, t("This cell")), h("p", { class: "notice error" }, t("The operands could not be read: {why}", { why: error.message })));
      return;
    }
    if (turn !== this.turn) return;
    clear(
      this.host,
      h("h3", null, t("This cell")),
      this.#headline(trace, cell, found),
      h("pre", { class: "why-arithmetic", tabindex: "0", "data-testid": "arithmetic" }, found.lines.join("\n")),
      found.note ? h("p", { class: "caption" }, found.note) : null,
      this.#terms(found),
      this.#sources(found),
      this.#check(trace, cell, found),
      found.step ? this.#formula(found.step) : null,
      h("p", { class: "caption" }, locked ? t("Locked. Esc or a second click unlocks.") : t("Preview. Click to lock.")),
    );
  }

  #formula(step) {
    const shown = formula(step);
    return shown ? [h("h3", null, t("Formula")), shown] : null;
  }

  #headline(trace, cell, found) {
    const pair = ["scores", "scale", "mask", "softmax"].includes(found.step?.stage); // a query and a key
    const place = trace.isWide(cell.tensor)
      ? [t("token"), " ", chip(trace.vocabulary[cell.col], "value")]
      : pair
        ? [t("row {n}", { n: cell.row }), " ", chip(trace.labels[cell.row], "query"), " → ", t("column {n}", { n: cell.col }), " ", chip(trace.labels[cell.col], "key")]
        : [t("row {n}", { n: cell.row }), " ", chip(trace.labels[cell.row], "residual"), " · ", this.#column(trace, cell)];
    return h("div", { class: "why-head" },
      h("output", { class: "why-value", title: full(found.shown), "data-testid": "cell-value" }, sig(found.shown)),
      h("p", { class: "caption" }, place),
      h("p", { class: "caption why-tensor" }, h("code", null, `${cell.tensor}[${trace.index(cell).join(", ")}]`)),
    );
  }

  #column(trace, cell) {
    const shape = trace.file.shape(cell.tensor);
    if (cell.tensor === "logits" || cell.tensor === "probs") return [t("next token"), " ", chip(trace.vocabulary[cell.col], "value")];
    return shape.length === 1 ? "" : t("feature {n}", { n: cell.col });
  }

  /** Every product of a sum, in a table that opens on demand. */
  #terms(found) {
    if (!found.terms || found.terms.items.length <= 6) return null;
    const { left, right, items } = found.terms;
    const body = h("tbody");
    const fill = (n) => clear(body, items.slice(0, n).map((term) => this.#termRow(term)));
    const more = items.length > FIRST_TERMS
      ? h("button", { class: "button small quiet", type: "button", onclick: () => { fill(items.length); more.remove(); } }, t("Show all {n}", { n: items.length }))
      : null;
    const text = () => `${spellProducts(items, items.length)} = ${full(items.reduce((sum, term) => sum + term.product, 0))}`;
    const box = h("details", { class: "why-terms" },
      h("summary", null, t("All {n} products", { n: items.length })),
      h("div", { class: "why-table" },
        h("table", null, h("thead", null, h("tr", null, ["", left, right, `${left}·${right}`].map((name) => h("th", { class: "number", scope: "col" }, name)))), body)),
      h("div", { class: "row" }, more, copyButton(text)));
    box.addEventListener("toggle", () => box.open && !body.children.length && fill(FIRST_TERMS));
    return box;
  }

  #termRow(term) {
    const operand = (value, cell) => h("td", { class: "number", title: full(value) },
      cell ? h("button", { class: "why-link", type: "button", onclick: () => this.onWalk(cell) }, short(value)) : short(value));
    return h("tr", null,
      h("th", { scope: "row" }, term.label ?? String(term.index)),
      operand(term.a, term.from), operand(term.b, term.fromB),
      h("td", { class: "number", title: full(term.product) }, short(term.product)));
  }

  #sources(found) {
    if (!found.sources.length) return null;
    return [
      h("h3", null, t("Where the numbers came from")),
      h("ul", { class: "why-sources" }, found.sources.map((source) => h("li", null,
        source.cell
          ? h("button", { class: `why-source ${source.role ?? ""}`, type: "button", onclick: () => this.onWalk(source.cell) }, source.text, h("span", { "aria-hidden": "true" }, " ←"))
          : h("span", { class: "caption" }, source.text)))),
    ];
  }

  #check(trace, cell, found) {
    const id = `${trace.id}/${cell.tensor}/${trace.index(cell)}`;
    const box = h("div", { class: "why-check" });
    const draw = () => {
      const known = this.checks.get(id);
      clear(box, known?.state === "done" ? checked(known.result, found.shown) : null,
        known?.state === "failed" ? h("p", { class: "notice error" }, known.why) : null,
        known?.state === "done" ? null : h("button", {
          class: "button", type: "button", disabled: known?.state === "running", "data-testid": "check",
          onclick: () => run(),
        }, known?.state === "running" ? t("Checking…") : t("Check against torch")));
    };
    const run = async () => {
      this.checks.set(id, { state: "running" });
      draw();
      this.checks.set(id, await checkCell(trace, cell));
      draw();
    };
    draw();
    return box;
  }
}

async function checkCell(trace, cell) {
  try {
    const params = { model: trace.meta.model, weights: trace.meta.weights, text: trace.meta.text, tensor: cell.tensor, index: trace.index(cell), ...settings(trace.meta) };
    const job = await finished((await submit("transformer.check", params)).id);
    if (job.state !== "succeeded") return { state: "failed", why: job.message || t("The check did not finish.") };
    return { state: "done", result: job.result };
  } catch (problem) {
    return { state: "failed", why: problem.message };
  }
}

const settings = ({ temperature, top_k, top_p, seed }) => ({ temperature, top_k, top_p, seed });

function checked(result, shown) {
  const value = number(result.value);
  const gap = Object.is(value, shown) || value === shown ? 0 : Math.abs(value - shown);
  const near = gap <= 1e-5 * Math.max(1, Math.abs(shown));
  return h("div", { class: `notice ${near ? "why-ok" : "error"}`, "data-testid": "check-result" },
    h("p", null, near ? t("torch agrees") : t("torch differs"), near ? " ✓" : ""),
    h("dl", { class: "why-numbers" },
      h("dt", null, t("shown, float32")), h("dd", { title: full(shown) }, sig(shown, 8)),
      h("dt", null, t("torch, float64")), h("dd", { title: full(value), "data-testid": "check-value" }, sig(value, 8)),
      h("dt", null, t("difference")), h("dd", null, sig(gap, 3))),
    result.expression ? h("code", { class: "why-expression" }, result.expression) : null);
}

function copyButton(text) {
  const button = h("button", { class: "button small quiet", type: "button" }, t("Copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = t("Copied");
    } catch {
      button.textContent = t("Copying is not allowed here");
    }
    setTimeout(() => { button.textContent = t("Copy"); }, 1500);
  });
  return button;
}
