/**
 * A few helpers over the DOM. Text always goes in as text nodes: nothing here parses HTML.
 */

/**
 * Makes an element. `props`: `class`, `dataset`, `on<event>` functions, booleans (present or
 * absent), properties that have no attribute (`value`, `checked`, `indeterminate`), and
 * attributes. Children: nodes, strings, numbers, arrays; null, undefined and false are skipped.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

const PROPERTIES = new Set(["value", "checked", "indeterminate", "textContent", "tabIndex"]);

function setProp(element, name, value) {
  if (value === null || value === undefined) return;
  if (name === "dataset") Object.assign(element.dataset, value);
  else if (name.startsWith("on") && typeof value === "function") {
    element.addEventListener(name.slice(2).toLowerCase(), value);
  } else if (PROPERTIES.has(name)) element[name] = value;
  else if (typeof value === "boolean" && !name.startsWith("aria-")) {
    element.toggleAttribute(name, value);
  } else element.setAttribute(name, String(value));
}

/** Appends nodes and text, flattening arrays. */
export function append(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

/** Empties a node and fills it with the children. */
export function clear(parent, ...children) {
  parent.replaceChildren();
  return append(parent, children);
}

/** A word in its role's colour ("query", "key", …; CSS `.role`). Literal, whatever the text holds. */
export const chip = (text, role) => h("span", { class: `role ${role}` }, text);

/** A number that a sentence is about. */
export const strong = (text) => h("strong", { class: "number" }, text);

const SVG = "http://www.w3.org/2000/svg";

/** Makes an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  return append(element, children);
}

/** Sends a CustomEvent that bubbles; returns false when someone prevented it. */
export function emit(element, name, detail = {}, { cancelable = false } = {}) {
  return element.dispatchEvent(
    new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable }),
  );
}

let counter = 0;

/** A document-wide unique id with a readable beginning. */
export function uid(prefix = "id") {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** The JSON of a `json_script` element, or the fallback when the element is absent. */
export function pageData(id, fallback = null) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : fallback;
}

/** Runs `fn` once the calls have paused for `ms`. */
export function debounce(fn, ms) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(fn, ms, ...args);
  };
}

/** Offers a text as a file to save. */
export function download(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
