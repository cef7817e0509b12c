/**
 * Text in the page's language. Message ids are the English sentences; the catalogue of the
 * page's language is a module of its own that the import map names.
 */
import catalogue from "core/catalogue";

/** "en" or "zh-hans", as the API and the events spell it. */
export const lang = document.documentElement.lang.toLowerCase().startsWith("zh") ? "zh-hans" : "en";

/** Marks a string for extraction where it is declared; `t` translates it where it is shown. */
export const msg = (id) => id;

/** The message in the page's language, with `{name}` filled from `values`. */
export function t(id, values = null) {
  const found = catalogue[id];
  return fill(typeof found === "string" ? found : id, values);
}

/** Like `t`, for a count: English has two forms, Chinese one. `{n}` is the count. */
export function tn(one, many, n, values = null) {
  const found = catalogue[one];
  const forms = Array.isArray(found) ? found : [one, many];
  const form = forms.length === 1 || n === 1 ? forms[0] : forms[1];
  return fill(form, { n, ...values });
}

/** The page's language out of a pair `{"en": …, "zh-hans": …}`; a plain string stays. */
export function pick(text) {
  if (text === null || text === undefined) return "";
  if (typeof text === "string") return text;
  return text[lang] ?? text.en ?? "";
}

/** The message of an event or job that carries `message` and its twin `message_zh`. */
export function messageOf(data) {
  if (!data) return "";
  return (lang === "zh-hans" && data.message_zh) || pick(data.message);
}

/**
 * Splits a message at its placeholders, so that nodes can stand in them:
 * `parts("The query {token} looks", {token: chip})` → ["The query ", chip, " looks"].
 */
export function parts(id, values) {
  const found = catalogue[id];
  const text = typeof found === "string" ? found : id;
  return text.split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    return name !== undefined && name in values ? values[name] : piece;
  });
}

function fill(text, values) {
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
