/**
 * What the user sees, kept in the address: run, step, layer, head, cell. A copied address opens
 * the same view, and back and forward walk through it.
 */

const listeners = new Set();
let params = new URLSearchParams(location.search);
let writing = 0;
let pushed = false;

const read = (key) => params.get(key);

function notify(keys) {
  const touched = new Set(keys);
  for (const { names, fn } of [...listeners]) {
    if (names.some((name) => touched.has(name))) fn(state.all());
  }
}

// Browsers refuse more than about 200 history calls in 30 s: scrubbing writes at most 5 a second.
function write(push) {
  pushed ||= push;
  if (writing) return;
  writing = setTimeout(flush, pushed ? 0 : 200);
}

function flush() {
  clearTimeout(writing);
  writing = 0;
  const query = params.toString();
  const url = `${location.pathname}${query ? `?${query}` : ""}${location.hash}`;
  history[pushed ? "pushState" : "replaceState"](null, "", url);
  pushed = false;
}

export const state = {
  /** The value of a key as a string, or null. */
  get: read,

  /** The value as an integer, or the fallback. */
  int(key, fallback = null) {
    const value = Number.parseInt(read(key) ?? "", 10);
    return Number.isNaN(value) ? fallback : value;
  },

  /** All keys and values. */
  all: () => Object.fromEntries(params),

  /**
   * Sets keys (null removes one) and tells the listeners of those that changed.
   * `push` makes an entry of the history: use it for choices, not for scrubbing.
   */
  set(values, { push = false } = {}) {
    const changed = Object.entries(values).filter(([key, value]) => {
      const next = value === null || value === undefined || value === "" ? null : String(value);
      if (read(key) === next) return false;
      if (next === null) params.delete(key);
      else params.set(key, next);
      return true;
    });
    if (changed.length === 0) return;
    write(push);
    notify(changed.map(([key]) => key));
  },

  /** Calls `fn(all)` after one of the keys has changed. Returns the function that stops it. */
  on(keys, fn) {
    const entry = { names: [keys].flat(), fn };
    listeners.add(entry);
    return () => listeners.delete(entry);
  },

  /** The address of the present view, for a share button. */
  url() {
    if (writing) flush();
    return location.href;
  },
};

addEventListener("popstate", () => {
  const before = params;
  params = new URLSearchParams(location.search);
  const keys = new Set([...before.keys(), ...params.keys()]);
  notify([...keys].filter((key) => before.get(key) !== params.get(key)));
});
// The language link and a reload must see the latest state.
addEventListener("pagehide", () => writing && flush());
document.addEventListener("click", () => writing && flush(), { capture: true });

export default state;
