/** Light, dark or as the system; projector size; colours for what is drawn by script. */

/** Colour roles, the same in every lab: each is a custom property and a CSS class. */
export const ROLES = ["query", "key", "value", "attention", "residual", "gradient", "index-key", "row-data"];

const root = document.documentElement;
const THEMES = ["system", "light", "dark"];
const listeners = new Set();
const system = matchMedia("(prefers-color-scheme: dark)");
let cache = new Map();

/** The choice: "system", "light" or "dark". */
export const choice = () => root.dataset.theme ?? "system";

/** What is on screen: "light" or "dark". */
export const shown = () => root.dataset.theme ?? (system.matches ? "dark" : "light");

/** Chooses a theme and remembers it on this machine. */
export function setTheme(name) {
  if (!THEMES.includes(name)) throw new RangeError(`No such theme: ${name}`);
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  remember("theme", name === "system" ? null : name);
  changed();
}

/** The next choice in the circle, for a single button. */
export const nextTheme = () => THEMES[(THEMES.indexOf(choice()) + 1) % THEMES.length];

export const projector = () => "projector" in root.dataset;

/** Projector size: everything 1.3 times as large. */
export function setProjector(on) {
  root.toggleAttribute("data-projector", on);
  remember("projector", on ? "on" : null);
  changed();
}

/** Calls `fn` after the theme or the size has changed. Returns the function that stops it. */
export function onTheme(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

/** A custom property as a colour that canvas and Plotly read, for instance `colour("--query")`. */
export function colour(name) {
  if (!cache.has(name)) {
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    cache.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return cache.get(name);
}

/** The same colour, translucent. `alpha` from 0 to 1. */
export function alpha(name, a) {
  const [r, g, b] = colour(name).match(/[\d.]+/g);
  return `rgba(${r}, ${g}, ${b}, ${a})`;
}

/** Pixels in a rem, for drawings that follow projector size. */
export const rem = () => Number.parseFloat(getComputedStyle(root).fontSize);

function changed() {
  cache = new Map();
  for (const fn of listeners) fn(shown());
}

function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Storage may be forbidden: the choice then lasts as long as the page.
  }
}

system.addEventListener("change", () => {
  if (choice() === "system") changed();
});
// Another tab changed its mind: follow it.
addEventListener("storage", (event) => {
  if (event.key === "theme") {
    if (event.newValue) root.dataset.theme = event.newValue;
    else delete root.dataset.theme;
    changed();
  } else if (event.key === "projector") {
    root.toggleAttribute("data-projector", event.newValue === "on");
    changed();
  }
});
