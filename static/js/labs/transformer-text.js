/** The text to step through: a counter of tokens, and characters the model has never seen, marked. */

import { clear, debounce, h } from "core/dom";
import { glyphs } from "core/format";
import { t, tn } from "core/i18n";

export class TextBox {
  /** `onSubmit(text)` runs for the button and for Ctrl+Enter. */
  constructor(host, { onSubmit }) {
    this.onSubmit = onSubmit;
    this.vocabulary = null;
    this.block = null;
    this.input = h("textarea", {
      id: "trace-text", rows: "3", spellcheck: "false", autocomplete: "off", "aria-describedby": "trace-count trace-unseen",
    });
    this.count = h("p", { class: "caption", id: "trace-count" });
    this.unseen = h("div", { id: "trace-unseen", "aria-live": "polite" });
    this.button = h("button", { class: "button primary wide", type: "submit" }, t("Step through this text"));
    this.form = h("form", { class: "stack" },
      h("label", { class: "overline", for: "trace-text" }, t("Text")), this.input, this.count, this.unseen, this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.button.disabled) this.onSubmit(this.input.value);
    });
    this.input.addEventListener("input", debounce(() => this.look(), 60));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    host.append(this.form);
    this.look();
  }

  get value() {
    return this.input.value;
  }

  set value(text) {
    this.input.value = text;
    this.look();
  }

  /** What the model knows: its characters and the longest text it reads. */
  setModel({ vocabulary, block }) {
    this.vocabulary = new Set(vocabulary);
    this.block = block;
    this.look();
  }

  /** The server's refusal, in place, with the input kept. */
  refuse(problem) {
    const errors = problem.errors?.length ? problem.errors.map((error) => error.detail) : [problem.message];
    clear(this.unseen, errors.map((text) => h("p", { class: "notice error" }, text)));
  }

  set busy(busy) {
    this.working = busy;
    this.button.textContent = busy ? t("Computing…") : t("Step through this text");
    this.look();
  }

  look() {
    const tokens = Array.from(this.input.value);
    const long = this.block !== null && tokens.length > this.block;
    this.count.classList.toggle("over", long);
    this.count.textContent = this.block === null
      ? tn("{n} token", "{n} tokens", tokens.length)
      : t("{n} of {block} tokens", { n: tokens.length, block: this.block });
    const strange = this.vocabulary ? tokens.filter((token) => !this.vocabulary.has(token)) : [];
    this.input.setAttribute("aria-invalid", String(long || strange.length > 0));
    this.button.disabled = Boolean(this.working) || long || strange.length > 0 || tokens.length === 0;
    if (long) {
      clear(this.unseen, h("p", { class: "notice error" }, t("{n} tokens are too many: the model reads at most {block}. Take out {over}.", { n: tokens.length, block: this.block, over: tokens.length - this.block })));
    } else if (strange.length) this.#mark(tokens, strange);
    else clear(this.unseen);
  }

  #mark(tokens, strange) {
    const names = [...new Set(strange)];
    clear(this.unseen,
      h("p", { class: "notice error" },
        tn("The model has never seen this character:", "The model has never seen these characters:", names.length), " ",
        names.slice(0, 12).map((name) => [h("span", { class: "role error" }, glyphs(name)), " "]),
        h("button", { class: "button small", type: "button", onclick: () => { this.value = tokens.filter((token) => this.vocabulary.has(token)).join(""); this.input.focus(); } }, t("Take them out"))),
      h("p", { class: "trace-marked", "aria-hidden": "true" }, tokens.map((token) => (this.vocabulary.has(token) ? glyphs(token) : h("mark", null, glyphs(token))))));
  }
}
