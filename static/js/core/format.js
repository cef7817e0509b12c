/**
 * Numbers, times and sizes as people read them: 4 significant digits, tabular, units always.
 * Tagged numbers (`{"$num": "NaN"}`) are what JSON cannot hold; `number` turns them back.
 */
import { lang, t, tn } from "core/i18n";

const locale = lang === "zh-hans" ? "zh-Hans" : "en";
const grouped = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const MINUS = "\u2212";

/** A JSON value as a number: tagged values become NaN or ±Infinity; null stays null. */
export function number(value) {
  if (typeof value === "number" || value === null || value === undefined) return value ?? null;
  if (typeof value === "object" && "$num" in value) return Number(value.$num);
  return null;
}

/** A number in `digits` significant digits: 0.7339, 12.35, 21480, 3e−4. */
export function sig(value, digits = 4) {
  const n = number(value);
  if (n === null) return "–";
  if (Number.isNaN(n)) return "NaN";
  if (!Number.isFinite(n)) return n > 0 ? "∞" : `${MINUS}∞`;
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size >= 1e6 || size < 1e-3) return tidy(n.toExponential(digits - 1));
  if (Number.isInteger(n)) return minus(String(n));
  if (size >= 10 ** digits) return minus(String(Math.round(n)));
  return minus(n.toPrecision(digits));
}

/** Like `sig`, without zeros at the end: for labels of choices and sliders. */
export function short(value, digits = 4) {
  const text = sig(value, digits);
  return /[.]\d*0+$/.test(text) ? text.replace(/\.?0+$/, "") : text;
}

/** All the digits a double has, for hover and copy. */
export function full(value) {
  const n = number(value);
  return n === null ? "–" : minus(String(n));
}

/** A count with separators: 21,480. */
export function count(value) {
  const n = number(value);
  return n === null || !Number.isFinite(n) ? sig(n) : grouped.format(n);
}

/** A large count with a letter: 811k, 1.2M. */
export function compact(value) {
  const n = number(value);
  if (n === null || !Number.isFinite(n)) return sig(n);
  if (Math.abs(n) < 1e4) return grouped.format(n);
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 })
    .format(n)
    .replace("K", "k");
}

/** A share from 0 to 1 as a percentage: 73 %, 0.4 %. */
export function percent(value) {
  const n = number(value);
  if (n === null || !Number.isFinite(n)) return sig(n);
  const p = n * 100;
  const text = p !== 0 && Math.abs(p) < 1 ? short(p, 2) : String(Math.round(p));
  return lang === "zh-hans" ? `${text}%` : `${text} %`;
}

/** Bytes: 540 B, 1.2 MB. */
export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let n = number(value) ?? 0;
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? n : short(n, 3)} ${units[unit]}`;
}

/** A span of seconds in words: 8 s, 1 min 20 s, 2 h 5 min. */
export function duration(seconds) {
  const n = number(seconds);
  if (n === null || !Number.isFinite(n) || n < 0) return "–";
  if (n < 1) return t("{n} ms", { n: Math.round(n * 1000) });
  if (n < 60) return t("{n} s", { n: n < 10 ? short(n, 2) : Math.round(n) });
  const s = Math.round(n);
  if (s < 3600) {
    return s % 60
      ? t("{m} min {s} s", { m: Math.floor(s / 60), s: s % 60 })
      : t("{m} min", { m: s / 60 });
  }
  return t("{h} h {m} min", { h: Math.floor(s / 3600), m: Math.round((s % 3600) / 60) });
}

/** How long ago a moment was. `then` is unix seconds or an ISO string. */
export function ago(then, now = Date.now() / 1000) {
  const at = typeof then === "string" ? Date.parse(then) / 1000 : number(then);
  const s = Math.max(0, Math.round(now - at));
  if (s < 5) return t("just now");
  if (s < 60) return tn("{n} second ago", "{n} seconds ago", s);
  if (s < 3600) return tn("{n} minute ago", "{n} minutes ago", Math.floor(s / 60));
  if (s < 86_400) return tn("{n} hour ago", "{n} hours ago", Math.floor(s / 3600));
  return tn("{n} day ago", "{n} days ago", Math.floor(s / 86_400));
}

const GLYPHS = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□" };

/** A token's text with visible glyphs for what has no ink. */
export function glyphs(text) {
  return String(text).replace(/[ \n\r\t\u00a0\u3000]/g, (c) => GLYPHS[c]);
}

function tidy(text) {
  const [mantissa, exponent] = text.split("e");
  const m = mantissa.replace(/\.?0+$/, "");
  return minus(`${m}e${Number(exponent)}`);
}

const minus = (text) => text.replaceAll("-", MINUS);
