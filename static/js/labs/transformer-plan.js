/** The model as chosen in the form: its diagram, the sentence it is watched on, what it will read. */

import { clear, h } from "core/dom";
import { pick, t } from "core/i18n";
import "elements/token-strip";
import { diagram } from "labs/transformer-diagram";

/** `text` is what the page knows about the chosen training text; null for one's own. */
export function plan(host, values, text, vocabulary) {
  const art = h("div", { class: "model-art" });
  diagram(art, values, vocabulary);
  clear(host, h("h2", null, t("The model you are about to train")), art, probe(values, text), text ? reading(text) : null);
}

function probe(values, text) {
  const tokens = Array.from(values.probe || text?.probe || "").slice(0, values.block);
  if (!tokens.length) return null;
  const strip = h("token-strip", { label: t("The sentence you watch it on"), static: true });
  strip.tokens = tokens;
  return h("div", { class: "stack" }, h("h3", null, t("The sentence you watch it on, token by token")), strip);
}

/** The beginning of a training text, with thanks to where it comes from. */
function reading(text) {
  return h("div", { class: "stack" },
    h("h3", null, t("What it will read")),
    h("blockquote", { class: "excerpt", dir: "auto" }, text.excerpt, text.tokens > Array.from(text.excerpt).length ? "…" : null),
    h("p", { class: "caption" }, pick(text.source), " ", text.licence));
}
