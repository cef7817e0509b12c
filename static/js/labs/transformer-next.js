/**
 * The next token: bars over the vocabulary that follow temperature, top-k and top-p live (the same
 * arithmetic as the server's, over the last logits), the drawn token, and "write on".
 */

import { distribution, pick } from "core/arithmetic";
import { chip, clear, h } from "core/dom";
import { glyphs, percent, short } from "core/format";
import { t } from "core/i18n";
import { control, finished, submit } from "core/jobs";

const BARS = 8;
const KNOBS = [
  { name: "temperature", label: () => t("temperature"), min: 0, max: 2, step: 0.05, value: 1, words: (v) => (v > 0 ? short(v) : t("0: greedy")) },
  { name: "top_k", label: () => t("top-k"), min: 0, max: 50, step: 1, value: 0, words: (v) => (v > 0 ? String(v) : t("all")) },
  { name: "top_p", label: () => t("top-p"), min: 0.05, max: 1, step: 0.05, value: 1, words: (v) => (v < 1 ? short(v) : t("all")) },
];

export class NextToken {
  /** `onText(text)` is called when the reader wants the written text to be stepped through. */
  constructor(host, { onText }) {
    this.onText = onText;
    this.knobs = {};
    this.bars = h("ol", { class: "next-bars", "aria-label": t("Likeliest next tokens") });
    this.drawn = h("p", { class: "caption", "aria-live": "polite", "data-testid": "drawn" });
    this.written = h("div", { class: "next-written", "aria-live": "polite" });
    this.writeButton = h("button", { class: "button wide", type: "button", disabled: true, onclick: () => this.#write() }, t("Write on"));
    host.append(
      h("h3", null, t("Next token")), this.bars, this.drawn,
      h("div", { class: "next-knobs" }, KNOBS.map((knob) => this.#knob(knob))),
      this.writeButton, this.written);
  }

  #knob({ name, label, min, max, step, value, words }) {
    const output = h("output", { class: "number" }, words(value));
    const input = h("input", { type: "range", min, max, step, value: String(value), "data-knob": name });
    const show = () => {
      output.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
      input.style.setProperty("--fill", String((Number(input.value) - min) / (max - min)));
      this.draw();
    };
    input.addEventListener("input", show);
    this.knobs[name] = input;
    queueMicrotask(show);
    return h("label", { class: "next-knob" }, h("span", null, label()), input, output);
  }

  get how() {
    const read = (name) => Number(this.knobs[name].value);
    return { temperature: read("temperature"), top_k: read("top_k"), top_p: read("top_p") };
  }

  /** Starts from a trace: its last logits, its settings, its draw. */
  async setTrace(trace) {
    this.trace = trace;
    const step = trace.steps.find((one) => one.stage === "sample");
    const logits = await trace.row("sample.logits", null, 0);
    if (this.trace !== trace) return;
    Object.assign(this, { logits, attrs: step.attrs });
    this.knobs.top_k.max = String(Math.min(logits.length, 50));
    this.writeButton.disabled = false;
    clear(this.written);
    this.draw();
  }

  draw() {
    if (!this.logits) return;
    const how = this.how;
    const found = distribution(this.logits, { temperature: how.temperature, topK: how.top_k, topP: how.top_p });
    const chosen = pick(found.probs, this.attrs.draw);
    const shown = found.order.slice(0, BARS);
    if (!shown.includes(chosen)) shown[BARS - 1] = chosen;
    const top = found.probs[found.order[0]];
    clear(this.bars, shown.map((id) => this.#bar(id, found.probs[id], top, { chosen: id === chosen, cut: !found.kept.has(id) })));
    const token = chip(glyphs(this.trace.meta.vocab[chosen]), "value");
    clear(this.drawn, how.temperature > 0
      ? [t("sampled"), " ", token, " · ", t("seed {seed}, draw {u} · {n} of {vocab} tokens kept", { seed: this.attrs.seed, u: short(this.attrs.draw), n: found.kept.size, vocab: this.logits.length })]
      : [t("greedy: the likeliest token"), " ", token]);
  }

  #bar(id, p, top, { chosen, cut }) {
    const fill = h("span", { class: "next-fill" });
    fill.style.setProperty("--share", String(top > 0 ? p / top : 0));
    return h("li", { class: `next-bar${chosen ? " chosen" : ""}${cut ? " cut" : ""}`, title: cut ? t("cut by top-k or top-p") : String(p) },
      h("span", { class: "next-name" }, glyphs(this.trace.meta.vocab[id])), h("span", { class: "next-room" }, fill),
      h("span", { class: "number" }, cut ? "–" : percent(p)), h("span", { class: "visually-hidden" }, chosen ? t("sampled") : ""));
  }

  async #write() {
    if (this.job) {
      control(this.job, "cancel").catch(() => {});
      return;
    }
    const { meta } = this.trace;
    const made = h("span", { class: "next-text" });
    const facts = h("p", { class: "caption" });
    clear(this.written, h("p", { class: "next-line", dir: "auto" }, h("span", { class: "next-prompt" }, meta.text), made), facts);
    this.writeButton.textContent = t("Stop");
    let text = "";
    try {
      const job = await submit("transformer.generate", { model: meta.model, weights: meta.weights, prompt: meta.text, max_tokens: 60, seed: meta.seed, ...this.how });
      this.job = job.id;
      const end = await finished(job.id, {
        onEvent: ({ type, data }) => {
          if (type !== "frame" || data.name !== "token") return;
          text += data.text;
          made.append(h("span", { title: `p = ${short(data.p)}` }, data.text));
          facts.textContent = t("token {i}: p {p}, {kept} kept, entropy {entropy}", { i: data.i + 1, p: short(data.p, 3), kept: data.kept, entropy: short(data.entropy, 3) });
        },
      });
      if (end.state === "failed") throw new Error(end.message);
      if (text) this.#offer(meta.text + text);
    } catch (problem) {
      this.written.append(h("p", { class: "notice error" }, problem.message));
    } finally {
      this.job = null;
      this.writeButton.textContent = t("Write on");
    }
  }

  #offer(text) {
    const last = Array.from(text).slice(-this.trace.config.block).join("");
    this.written.append(h("button", { class: "button small", type: "button", onclick: () => this.onText(last) }, t("Step through what it wrote")));
  }
}
