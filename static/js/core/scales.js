/**
 * From numbers to colours: value classes, scales (0–1, row maximum, maximum, log) and ramps.
 *
 * Every ramp starts at the panel's own background in both themes, so that zero looks like nothing.
 * Colours are mixed in OKLab (https://bottosson.github.io/posts/oklab/), where equal steps look equal.
 */

/** What a cell holds when it is not an ordinary number. Each has its own hatch. */
export const CELL = { value: 0, masked: 1, nan: 2, posinf: 3, neginf: 4, missing: 5 };

export function classify(value) {
  if (Number.isNaN(value)) return CELL.nan;
  if (value === Infinity) return CELL.posinf;
  if (value === -Infinity) return CELL.neginf;
  return CELL.value;
}

/** Smallest, largest and largest absolute finite value; `count` says how many there are. */
export function domain(values, codes = null) {
  let min = Infinity;
  let max = -Infinity;
  let count = 0;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (!Number.isFinite(value) || (codes && codes[i] !== CELL.value)) continue;
    if (value < min) min = value;
    if (value > max) max = value;
    count += 1;
  }
  if (!count) return { min: 0, max: 0, peak: 0, count };
  return { min, max, peak: Math.max(Math.abs(min), Math.abs(max)), count };
}

/**
 * Colour levels, one byte a cell: 0…255 for a sequential ramp; for a diverging one 128 is zero.
 * `unit` maps 0…1, `row` divides by the row's own peak, `max` by the peak of all, `log` shows
 * orders of magnitude below the peak (five of them).
 */
export function levels(values, cols, { scale = "max", diverging = false, codes = null, peak = null } = {}) {
  const out = new Uint8ClampedArray(values.length);
  const rows = cols ? values.length / cols : 0;
  const overall = peak ?? domain(values, codes).peak;
  for (let r = 0; r < rows; r += 1) {
    const from = r * cols;
    const top = scale === "unit" ? 1 : scale === "row" ? rowPeak(values, codes, from, cols) : overall;
    for (let i = from; i < from + cols; i += 1) {
      const value = values[i];
      if (!Number.isFinite(value)) continue;
      const share = top > 0 ? portion(Math.abs(value) / top, scale) : 0;
      out[i] = diverging ? 128 + Math.sign(value) * share * 127 : share * 255;
    }
  }
  return out;
}

function rowPeak(values, codes, from, cols) {
  return domain(values.subarray(from, from + cols), codes?.subarray(from, from + cols)).peak;
}

function portion(share, scale) {
  if (scale !== "log") return Math.min(share, 1);
  if (share <= 0) return 0;
  return Math.max(0, Math.min(1, 1 + Math.log10(share) / 5));
}

// ---------------------------------------------------------------- colours

function toLinear(channel) {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

function fromLinear(channel) {
  const c = Math.max(0, Math.min(1, channel));
  return Math.round(255 * (c <= 0.0031308 ? c * 12.92 : 1.055 * c ** (1 / 2.4) - 0.055));
}

function toOklab([red, green, blue]) {
  const [r, g, b] = [toLinear(red), toLinear(green), toLinear(blue)];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    fromLinear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    fromLinear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    fromLinear(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

export function mix(from, to, share) {
  const [a, b] = [toOklab(from), toOklab(to)];
  return fromOklab(a.map((value, i) => value + (b[i] - value) * share));
}

let probe = null;
let pixel = null;

/** Any CSS colour (a custom property too) as [red, green, blue] in 0…255. */
export function resolve(css, host = document.documentElement) {
  probe ??= document.createElement("span");
  pixel ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  probe.hidden = true;
  host.append(probe);
  probe.style.color = css;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

const ENDS = {
  attention: ["var(--ramp-attention, var(--attention))"],
  sequential: ["var(--ramp-seq, var(--accent))"],
  query: ["var(--query)"],
  key: ["var(--key)"],
  value: ["var(--value)"],
  diverging: ["var(--ramp-pos, var(--error))", "var(--ramp-neg, var(--value))"],
};

/** 256 colours as packed little-endian RGBA, ready for ImageData; index 0 (or 128) is the panel. */
export function ramp(name, host = document.documentElement) {
  const ground = resolve("var(--surface)", host);
  const ends = (ENDS[name] ?? ENDS.sequential).map((css) => resolve(css, host));
  const out = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    let colour;
    if (ends.length === 1) colour = mix(ground, ends[0], i / 255);
    else if (i >= 128) colour = mix(ground, ends[0], (i - 128) / 127);
    else colour = mix(ground, ends[1], (128 - i) / 128);
    out[i] = ((255 << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0]) >>> 0;
  }
  return out;
}

export function css(packed) {
  return `rgb(${packed & 255} ${(packed >>> 8) & 255} ${(packed >>> 16) & 255})`;
}

export function isDiverging(name) {
  return (ENDS[name] ?? []).length === 2;
}
