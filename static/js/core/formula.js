/** A step's formula on the page: the one place that parses markup, and it parses XML. */
import { h } from "core/dom";

/** MathML that the server made out of our own TeX; else the TeX itself; null without either. */
export function formula({ mathml, formula: tex }) {
  const math = mathml && new DOMParser().parseFromString(mathml, "application/xml").documentElement;
  if (math?.localName === "math") {
    return h("div", { class: "formula", role: "group", "aria-label": tex }, document.importNode(math, true));
  }
  return tex ? h("code", { class: "formula" }, tex) : null;
}
