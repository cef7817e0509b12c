/**
 * The step view: one forward pass of a trained model, stage by stage, for one layer and head.
 * Composes the text box, the head overview, the board, the sentence, the "why" panel, the next
 * token and the player; everything chosen is in the address.
 */

import { clear, h } from "core/dom";
import { count } from "core/format";
import { pick, t } from "core/i18n";
import { artifactUrl, ended, finished, getJob, submit } from "core/jobs";
import { state } from "core/view-state";
import "elements/step-player";
import { Board, scaleNames } from "labs/transformer-board";
import { figure, groupOf, NAMES } from "labs/transformer-figures";
import { HeadGrid } from "labs/transformer-heads";
import { NextToken } from "labs/transformer-next";
import { sentence } from "labs/transformer-sentences";
import { drawLine, spread } from "labs/transformer-spread";
import { TextBox } from "labs/transformer-text";
import { TraceData } from "labs/transformer-trace";
import { Why } from "labs/transformer-why";

const FIRST_STAGE = "softmax";

export class StepView {
  constructor({ left, centre, right, player, onTrain }) {
    Object.assign(this, { centre, onTrain, hovered: null });
    this.text = new TextBox(left.appendChild(h("div")), { onSubmit: (text) => this.traceText(text) });
    this.weightsNote = left.appendChild(h("p", { class: "caption", "data-testid": "weights-note" }));
    const overview = left.appendChild(h("div", { class: "stack" }, h("h3", null, t("Layers × heads"))));
    this.grid = new HeadGrid(overview.appendChild(h("div")), { onPick: (layer, head) => this.pickHead(layer, head) });
    overview.append(h("p", { class: "caption" }, t("rows: layers · columns: heads · click to open")));
    this.#centre();
    const [why, next] = ["why", "next"].map((name) => right.appendChild(h("div", { class: `stack ${name}` })));
    this.why = new Why(why, { onWalk: (cell) => this.walk(cell) });
    this.next = new NextToken(next, { onText: (text) => { this.text.value = text; this.traceText(text); } });
    this.bar = player.appendChild(h("step-player", { label: t("Stages of the forward pass"), dwell: "2200" }));
    this.fromTrace = [overview, why, next, this.bar]; // what there is only with a trace
    this.bar.animate = (move) => this.#enter(move);
    this.bar.addEventListener("step-change", (event) => {
      state.set({ step: event.detail.id, row: null, col: null, tensor: null });
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    state.on(["step", "layer", "head", "row", "col", "tensor", "scale"], () => this.#changed());
    state.on(["trace"], () => this.active && state.get("trace") !== this.trace?.id && this.open(this.run));
  }

  #centre() {
    this.crumbs = h("nav", { class: "breadcrumb", "aria-label": t("Where you are") });
    this.title = h("h1", { class: "step-title", "aria-live": "polite" });
    this.line = h("p", { class: "lead step-sentence", "data-testid": "sentence" });
    this.scale = h("select", { class: "scale-choice", "aria-label": t("Colour scale") },
      Object.entries(scaleNames()).map(([value, name]) => h("option", { value }, name)));
    this.scale.addEventListener("change", () => state.set({ scale: this.scale.value === "row" ? null : this.scale.value }));
    this.figure = h("div", { class: "figure" });
    this.extra = h("div", { class: "card extra", hidden: true });
    this.notice = h("div", { class: "step-notice", "aria-live": "polite" });
    this.board = new Board(this.figure, { onHover: (cell) => this.hover(cell), onSelect: (cell) => this.select(cell) });
    this.tools = h("div", { class: "figure-tools" }, h("span", { class: "caption figure-hint" }, t("hover previews · click locks · Esc unlocks")), h("label", { class: "caption" }, t("colour scale"), " ", this.scale));
    this.centre.append(
      h("div", { class: "row spread" }, this.crumbs, this.tools), this.title, this.line, this.notice, this.figure, this.extra);
  }

  // ------------------------------------------------------------ what is shown

  get layer() {
    return Math.max(0, Math.min(state.int("layer", 0), (this.trace?.config.layers ?? 1) - 1));
  }

  get head() {
    return Math.max(0, Math.min(state.int("head", 0), (this.trace?.config.heads ?? 1) - 1));
  }

  get step() {
    const steps = this.trace.stepsOf(this.layer);
    return steps.find((step) => step.stage === state.get("step")) ?? steps.find((step) => step.stage === FIRST_STAGE) ?? steps[0];
  }

  /** The colour scale, as the address names it. */
  get scaleName() {
    const wanted = state.get("scale");
    return Object.hasOwn(scaleNames(), wanted ?? "") ? wanted : "row";
  }

  /** The locked cell, as the address names it. */
  get locked() {
    const [row, col] = [state.int("row"), state.int("col")];
    if (row === null || col === null) return null;
    const tensor = state.get("tensor") ?? this.board.main().one.tensor;
    const view = this.board.views.find((one) => one.one.tensor === tensor && (one.head === null || one.head === this.head || one.one.head !== undefined));
    const inside = view && row >= 0 && col >= 0 && row < view.data.rows && col < view.data.cols;
    return inside ? { tensor, head: view.head === null ? null : this.head, row, col } : null;
  }

  /** Opens a run, ended or not: its trace from the address, or a new one of the default text. */
  async open(run) {
    this.run = run;
    this.active = true;
    clear(this.notice);
    if (!run) {
      this.#empty(t("There is no trained model yet"), t("Train one first: it takes about a minute."));
      return;
    }
    try {
      await this.#model(run);
      const wanted = state.get("trace");
      if (wanted && (await this.#load(wanted))) return;
      await this.traceText(this.text.value || this.probe, { keepCell: true });
    } catch (error) {
      this.#empty(t("This model can't be opened"), error.message);
    }
  }

  /** The address names a run that can't be stepped through. */
  refuse(title, text) {
    this.run = null;
    this.active = true;
    clear(this.notice);
    this.#empty(title, text);
  }

  async #model(run) {
    if (this.model === run.id) return;
    const response = await fetch(artifactUrl(run.id, "tokenizer.json"));
    if (!response.ok) throw new Error(ended(run) ? t("The run has no saved model. Train again, a little longer.") : t("The run has not started yet."));
    const { vocabulary } = await response.json();
    const config = await fetch(artifactUrl(run.id, "config.json")).then((r) => r.json());
    this.probe = config.probe || vocabulary.slice(0, 8).join("");
    this.text.setModel({ vocabulary, block: config.block ?? run.params.block });
    if (!this.text.value) this.text.value = Array.from(this.probe).slice(0, config.block).join("");
    this.model = run.id;
  }

  /** Shows a finished trace of this run; false when it can't be had. */
  async #load(id) {
    if (this.trace?.id === id) {
      await this.render();
      return true;
    }
    try {
      const job = await getJob(id);
      if (job.params.model !== this.run.id) return false;
      const end = job.state === "succeeded" ? job : await finished(id);
      if (end.state !== "succeeded") return false;
      await this.#adopt(await TraceData.load(id));
      return true;
    } catch {
      return false;
    }
  }

  /** Traces a text of the open run. `keepCell` leaves the address's cell locked: a link may name one. */
  async traceText(text, { keepCell = false } = {}) {
    this.text.busy = true;
    this.bar.pause();
    this.tools.hidden = !this.trace;
    if (!this.trace) this.title.textContent = t("Computing…");
    try {
      const { id } = await submit("transformer.trace", { model: this.run.id, text, ...this.next.how });
      const job = await finished(id);
      if (job.state !== "succeeded") throw new Error(job.message || t("The trace did not finish."));
      const trace = await TraceData.load(id);
      this.trace = trace;
      const cell = keepCell ? {} : { row: null, col: null, tensor: null };
      state.set({ trace: id, ...cell }, { push: !keepCell });
      await this.#adopt(trace);
      this.text.busy = false;
    } catch (problem) {
      this.text.busy = false;
      if (this.trace) this.text.refuse(problem);
      else this.#empty(ended(this.run) ? t("The text could not be traced") : t("This model is still learning"), problem.errors?.[0]?.detail ?? problem.message);
    }
  }

  async #adopt(trace) {
    this.trace = trace;
    this.hovered = null;
    this.text.value = trace.meta.text;
    const { checkpoint } = trace;
    this.weightsNote.textContent = checkpoint === null ? "" : t("Shown: the weights after step {n}. The button takes the newest.", { n: count(checkpoint) });
    for (const part of this.fromTrace) part.hidden = false;
    this.#track();
    await Promise.all([this.render(), this.#overview(), this.next.setTrace(trace)]);
  }

  async #overview() {
    const { layers, heads } = this.trace.config;
    const trace = this.trace;
    const all = await Promise.all(Array.from({ length: layers }, (_, layer) => trace.file.slice(`blocks.${layer}.attn.weights`)));
    if (trace !== this.trace) return;
    const n = trace.tokens.length;
    this.grid.show({ layers, heads, tokens: n, at: (layer, head) => all[layer].subarray(head * n * n, (head + 1) * n * n) });
    this.grid.choose(this.layer, this.head);
  }

  #track() {
    this.bar.steps = this.trace.stepsOf(this.layer).map((step) => ({
      id: step.stage, name: NAMES[step.stage]?.() ?? step.stage, title: pick(step.title), group: groupOf(step.stage),
    }));
    this.bar.current = this.step.stage;
  }

  #empty(title, text) {
    this.trace = null;
    this.bar.steps = [];
    this.title.textContent = title;
    clear(this.line, text);
    clear(this.crumbs);
    clear(this.figure, h("button", { class: "button primary big", type: "button", onclick: () => this.onTrain() }, t("Go to training")));
    this.weightsNote.textContent = "";
    for (const part of [this.extra, this.tools, ...this.fromTrace]) part.hidden = true;
  }

  // ------------------------------------------------------------ drawing

  async render({ covered = false } = {}) {
    const { trace, step } = this;
    const scale = this.scaleName;
    this.scale.value = scale;
    this.tools.hidden = false;
    this.drawn = `${trace.id}/${step.name}/${this.head}/${scale}`;
    this.title.textContent = pick(step.title);
    this.#crumbs(step);
    if (!(await this.board.show(trace, step, { head: this.head, scale, covered }))) return;
    this.grid.choose(this.layer, this.head);
    this.focus();
  }

  #crumbs(step) {
    const inLayer = this.trace.layerOf(step.name) !== null;
    const headed = step.outputs.some((name) => this.trace.hasHeads(name));
    clear(this.crumbs,
      inLayer ? h("span", null, t("Layer {n}", { n: this.layer + 1 })) : h("span", null, t("Whole model")),
      headed ? h("span", null, t("Head {n}", { n: this.head + 1 })) : null,
      h("span", { "aria-current": "step" }, NAMES[step.stage]?.() ?? step.stage));
  }

  async #enter({ how, previous, step, speed, signal }) {
    if (!this.trace) return;
    const steps = this.bar.steps.map((one) => one.id);
    const forward = Boolean(previous) && steps.indexOf(step.id) === steps.indexOf(previous.id) + 1;
    const covered = forward && !signal.aborted && how !== "follow";
    await this.render({ covered });
    if (covered && this.bar.current === step.id) {
      await this.board.play({ speed, signal });
      this.focus();
    }
  }

  #changed() {
    if (!this.active || !this.trace) return;
    const scale = this.scaleName;
    const key = `${this.trace.id}/${this.step.name}/${this.head}/${scale}`;
    if (this.bar.current !== this.step.stage) this.bar.current = this.step.stage;
    if (key === this.drawn) this.focus();
    else this.render();
  }

  /** Sentence, highlights, bars and the right panel for what is hovered, locked or telling. */
  focus() {
    if (!this.trace || !this.board.views.length) return;
    const locked = this.locked;
    const active = this.hovered ?? locked;
    const talk = active && this.board.find(active)?.side === "after" ? active : this.board.telling();
    this.board.highlight({ locked, active });
    const first = this.board.views.find((view) => view.side === "before");
    const before = first?.data.values[talk.row * first.data.cols + talk.col];
    clear(this.line, sentence(this.step, this.trace, { cell: { ...talk, head: this.head }, value: this.board.value(talk), before }));
    this.#extra(active ?? talk);
    if (active) this.why.show(this.trace, active, { locked: !this.hovered || sameCell(locked, active) });
    else this.why.guide(this.step, figure(this.step, this.trace).after[0], this.trace);
  }

  async #extra(cell) {
    const spec = this.board.spec;
    this.extra.hidden = !spec.spread && !spec.draw;
    const { step, trace } = this;
    if (spec.spread) {
      const tensor = step.attrs.weights ?? step.outputs[0];
      const weights = await trace.row(tensor, this.head, cell.row);
      if (step !== this.step) return;
      const name = (key) => (key === null ? null : { tensor, head: this.head, row: cell.row, col: key });
      const col = cell.tensor === tensor ? cell.col : null;
      const key = `${tensor}/${this.head}/${cell.row}`;
      if (this.extra.dataset.key === key && this.extra.firstChild) {
        [...this.extra.querySelectorAll(".spread-bar")].forEach((bar, i) => bar.classList.toggle("current", i === col));
        return;
      }
      this.extra.dataset.key = key;
      spread(this.extra, trace, { weights, row: cell.row, col, onHover: (k) => this.hover(name(k)), onSelect: (k) => this.select(name(k)) });
    } else if (spec.draw) {
      delete this.extra.dataset.key;
      const probs = await trace.row("sample.probs", null, 0);
      if (step === this.step) drawLine(this.extra, trace, { probs, attrs: step.attrs });
    }
  }

  // ------------------------------------------------------------ choosing

  hover(cell) {
    this.hovered = cell;
    this.focus();
  }

  select(cell) {
    this.hovered = null;
    if (!cell) {
      state.set({ row: null, col: null, tensor: null });
      return;
    }
    const main = this.board.main().one.tensor;
    const head = cell.head ?? this.head;
    state.set({ row: cell.row, col: cell.col, tensor: cell.tensor === main ? null : cell.tensor, head });
  }

  pickHead(layer, head) {
    this.bar.finish();
    const moved = layer !== this.layer;
    state.set({ layer, head }, { push: true });
    if (moved) this.#track();
    this.grid.choose(layer, head);
  }

  /** Walks back to where an operand was made. */
  walk(cell) {
    const step = this.trace.producer(cell.tensor);
    if (!step) return;
    this.bar.pause();
    this.bar.finish();
    this.hovered = null;
    const layer = this.trace.layerOf(step.name) ?? this.layer;
    const moved = layer !== this.layer;
    state.set({
      step: step.stage, layer, head: cell.head ?? this.head, row: cell.row, col: cell.col,
      tensor: step.outputs[0] === cell.tensor ? null : cell.tensor,
    }, { push: true });
    if (moved) this.#track();
  }

  #key(event) {
    if (event.key !== "Escape" || event.defaultPrevented || !this.active) return;
    if (this.locked || this.hovered) this.select(null);
  }
}

function sameCell(a, b) {
  return Boolean(a && b && a.tensor === b.tensor && a.head === b.head && a.row === b.row && a.col === b.col);
}
