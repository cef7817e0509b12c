/**
 * <token-strip>: a text as its tokens, one chip each. Hover previews, click or Enter locks, Esc
 * unlocks. Spaces, line ends and tabs get visible glyphs; letters of joining scripts keep the
 * shape they have in the word.
 *
 * Attributes
 *   label     what the strip is, for screen readers
 *   numbered  shows each token's position (from 0)
 *   static    no hover and no lock: only to read
 * Properties
 *   tokens    [string or {text, role?, unknown?, title?}]
 *   selected  locked index or null (setting it sends no event)
 *   roles     {index: "query" | "key" | …}: colours on top of the tokens' own
 *   weights   [0…1 or null] per token: fills the chip with the attention ramp
 * Events (bubble)
 *   token-hover {index}   index or null
 *   token-lock  {index}   index or null
 */
import { clear, emit, h } from "core/dom";
import { glyphs } from "core/format";
import { t } from "core/i18n";
import { ROLES } from "core/theme";

const MOST = 2000;
const ZWJ = "\u200d";
const JOINS = /^[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}]$/u;
const LETTER = /^\p{L}$/u;
const MARK = /^\p{M}/u;
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

const joins = (character) => JOINS.test(character) && LETTER.test(character);
const firstOf = (text) => [...text][0] ?? "";
const lastOf = (text) => [...text].at(-1) ?? "";

/**
 * What a chip shows: glyphs for what has no ink, a circle under a lone accent, and joiners where
 * the neighbours' letters touch, so that each letter keeps its contextual form.
 */
export function shown(texts, i) {
  const text = texts[i];
  if (text === "") return "∅";
  if (MARK.test(text)) return `◌${text}`;
  let out = glyphs(text);
  if (i > 0 && joins(firstOf(text)) && joins(lastOf(texts[i - 1]))) out = ZWJ + out;
  if (i + 1 < texts.length && joins(lastOf(text)) && joins(firstOf(texts[i + 1]))) out += ZWJ;
  return out;
}

export class TokenStrip extends HTMLElement {
  #tokens = [];
  #selected = null;
  #roles = {};
  #weights = null;
  #chips = [];
  #focus = 0;

  connectedCallback() {
    if (this.#chips.length === 0 && this.#tokens.length) this.#render();
    this.addEventListener("pointerover", this.#over);
    this.addEventListener("pointerleave", this.#leave);
    this.addEventListener("click", this.#click);
    this.addEventListener("keydown", this.#key);
    this.addEventListener("focusin", this.#focused);
  }

  disconnectedCallback() {
    this.removeEventListener("pointerover", this.#over);
    this.removeEventListener("pointerleave", this.#leave);
    this.removeEventListener("click", this.#click);
    this.removeEventListener("keydown", this.#key);
    this.removeEventListener("focusin", this.#focused);
  }

  get tokens() {
    return this.#tokens;
  }

  set tokens(tokens) {
    this.#tokens = tokens.map((token) => (typeof token === "string" ? { text: token } : token));
    this.#selected = null;
    this.#focus = 0;
    this.#render();
  }

  get selected() {
    return this.#selected;
  }

  set selected(index) {
    this.#selected = index !== null && index >= 0 && index < this.#tokens.length ? index : null;
    if (this.#selected !== null) this.#focus = this.#selected;
    this.#paint();
  }

  set roles(roles) {
    this.#roles = roles ?? {};
    this.#paint();
  }

  set weights(weights) {
    this.#weights = weights;
    this.#paint();
  }

  #render() {
    const still = this.hasAttribute("static");
    const texts = this.#tokens.map((token) => token.text);
    this.#chips = this.#tokens.slice(0, MOST).map((token, i) => this.#chip(token, texts, i, still));
    const strip = h(
      "div",
      {
        class: "tokens",
        role: still ? "list" : "listbox",
        "aria-label": this.getAttribute("label") ?? t("Tokens"),
        dir: texts.some((text) => RTL.test(text)) ? "rtl" : "ltr",
      },
      this.#chips,
    );
    const rest = this.#tokens.length - this.#chips.length;
    clear(
      this,
      strip,
      rest > 0 &&
        h(
          "p",
          { class: "caption" },
          t("shown {shown} of {all}", { shown: this.#chips.length, all: this.#tokens.length }),
        ),
    );
    this.#paint();
  }

  #chip(token, texts, i, still) {
    const name = token.unknown
      ? t("{token}, unknown to this model", { token: spoken(token.text) })
      : spoken(token.text);
    const chip = h(
      "span",
      {
        class: "token",
        role: still ? "listitem" : "option",
        "aria-label": name,
        title: token.title ?? (token.unknown ? name : null),
        dataset: { index: i },
      },
      h("bdi", { class: "token-text" }, shown(texts, i)),
    );
    if (glyphs(token.text) !== token.text) chip.classList.add("blank");
    if (token.unknown) chip.classList.add("unknown");
    if (this.hasAttribute("numbered")) {
      chip.append(h("span", { class: "token-number", "aria-hidden": "true" }, i));
    }
    return chip;
  }

  #paint() {
    const still = this.hasAttribute("static");
    this.#chips.forEach((chip, i) => {
      const role = this.#roles[i] ?? this.#tokens[i].role;
      for (const name of ROLES) chip.classList.toggle(name, name === role);
      const weight = this.#weights?.[i];
      chip.classList.toggle("weighted", typeof weight === "number");
      chip.classList.toggle("strong", weight > 0.55);
      chip.style.setProperty("--weight", typeof weight === "number" ? weight : 0);
      if (still) return;
      chip.setAttribute("aria-selected", String(i === this.#selected));
      chip.tabIndex = i === this.#focus ? 0 : -1;
    });
  }

  #indexOf(event) {
    const chip = event.target.closest?.(".token");
    return chip && !this.hasAttribute("static") ? Number(chip.dataset.index) : null;
  }

  #over = (event) => {
    const index = this.#indexOf(event);
    if (index !== null) emit(this, "token-hover", { index });
  };

  #leave = () => emit(this, "token-hover", { index: null });

  #click = (event) => {
    const index = this.#indexOf(event);
    if (index !== null) this.#lock(index === this.#selected ? null : index);
  };

  #focused = (event) => {
    const index = this.#indexOf(event);
    if (index === null) return;
    this.#focus = index;
    emit(this, "token-hover", { index });
  };

  #key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rtl = this.firstElementChild?.dir === "rtl";
    const last = this.#chips.length - 1;
    const moves = {
      ArrowRight: this.#focus + (rtl ? -1 : 1),
      ArrowLeft: this.#focus + (rtl ? 1 : -1),
      Home: 0,
      End: last,
    };
    if (event.key in moves) {
      this.#focus = Math.min(last, Math.max(0, moves[event.key]));
      this.#paint();
      this.#chips[this.#focus]?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.#lock(this.#focus === this.#selected ? null : this.#focus);
    } else if (event.key === "Escape" && this.#selected !== null) {
      this.#lock(null);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  #lock(index) {
    this.selected = index;
    emit(this, "token-lock", { index });
  }
}

const NAMES = { " ": () => t("space"), "\n": () => t("line end"), "\t": () => t("tab") };

const spoken = (text) => NAMES[text]?.() ?? text;

customElements.define("token-strip", TokenStrip);
