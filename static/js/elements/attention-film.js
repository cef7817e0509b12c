/**
 * <attention-film>: the attention maps of a real run, from its first step to its last.
 *
 * The file is frame after frame, one byte a weight (255 is 1), row by row; each frame holds a grid
 * of layers × heads maps of tokens × tokens. Colours are the theme's.
 *
 * Attributes
 *   src     the file
 *   steps   the frames' steps, "0,10,40"
 *   layers, heads, tokens
 *   label   what it shows, for screen readers
 */
import { clear, h } from "core/dom";
import { count } from "core/format";
import { t } from "core/i18n";
import { icon } from "core/icons";
import { reducedMotion } from "core/motion";
import { colour, onTheme } from "core/theme";

const FRAME_MS = 420;
const CELL = 6; // canvas pixels a weight
const GAP = 16;

export class AttentionFilm extends HTMLElement {
  #steps = [];
  #shape = null;
  #weights = null;
  #frame = 0;
  #timer = 0;
  #nodes = null;
  #unlisten = null;

  connectedCallback() {
    this.#unlisten = onTheme(() => this.#paint());
    if (!this.#nodes) this.#load();
  }

  disconnectedCallback() {
    this.#unlisten();
    this.#pause();
  }

  async #load() {
    const int = (name) => Number.parseInt(this.getAttribute(name), 10);
    this.#steps = this.getAttribute("steps").split(",").map(Number);
    this.#shape = { layers: int("layers"), heads: int("heads"), tokens: int("tokens") };
    this.#build();
    this.#weights = await read(this.getAttribute("src"));
    if (reducedMotion() || !this.isConnected) this.#show(this.#steps.length - 1);
    else this.#play();
  }

  #build() {
    const { layers, heads, tokens } = this.#shape;
    const canvas = h("canvas", {
      class: "film-canvas",
      role: "img",
      "aria-label": this.getAttribute("label"),
      width: heads * tokens * CELL + (heads - 1) * GAP,
      height: layers * tokens * CELL + (layers - 1) * GAP,
    });
    const toggle = h("button", { type: "button", class: "icon-button", onclick: () => this.#toggle() });
    const bar = h("input", {
      type: "range",
      min: 0,
      max: this.#steps.length - 1,
      value: 0,
      "aria-label": t("Step of the run"),
      oninput: () => {
        this.#pause();
        this.#show(Number(bar.value));
      },
    });
    const step = h("output", { class: "film-step" });
    this.#nodes = { canvas, toggle, bar, step };
    clear(this, canvas, h("div", { class: "film-controls" }, toggle, bar, step));
    this.#buttons();
  }

  #toggle() {
    if (this.#timer) this.#pause();
    else this.#play();
  }

  #play() {
    if (this.#frame >= this.#steps.length - 1) this.#frame = 0;
    this.#show(this.#frame);
    this.#timer = setInterval(() => {
      this.#show(this.#frame + 1);
      if (this.#frame >= this.#steps.length - 1) this.#pause();
    }, FRAME_MS);
    this.#buttons();
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#buttons();
  }

  #buttons() {
    const { toggle } = this.#nodes;
    clear(toggle, icon(this.#timer ? "pause" : "play"));
    toggle.setAttribute("aria-label", this.#timer ? t("Pause") : t("Play"));
  }

  #show(frame) {
    this.#frame = Math.min(frame, this.#steps.length - 1);
    const { bar, step } = this.#nodes;
    bar.value = String(this.#frame);
    bar.style.setProperty("--fill", this.#frame / Math.max(1, this.#steps.length - 1));
    step.textContent = t("step {step}", { step: count(this.#steps[this.#frame]) });
    bar.setAttribute("aria-valuetext", step.textContent);
    this.#paint();
  }

  #paint() {
    if (!this.#weights) return;
    const { layers, heads, tokens } = this.#shape;
    const paint = this.#nodes.canvas.getContext("2d");
    const map = new ImageData(heads * tokens, layers * tokens);
    const offset = (this.#frame * map.data.length) / 4;
    const [zero, one, future] = ["--surface", "--ramp-attention", "--ramp-hatch-bg"].map(rgb);
    for (let i = 0; i < map.data.length / 4; i += 1) {
      const row = Math.floor(i / map.width) % tokens;
      const column = (i % map.width) % tokens;
      const weight = this.#weights[offset + i] / 255;
      // The square root keeps small weights visible; the sketch has no scale to read.
      const share = Math.sqrt(weight);
      for (let c = 0; c < 3; c += 1) {
        map.data[4 * i + c] = column > row ? future[c] : zero[c] + share * (one[c] - zero[c]);
      }
      map.data[4 * i + 3] = 255;
    }
    this.#blit(paint, map);
  }

  /** Scales each head's map into its place, without smoothing. */
  #blit(paint, map) {
    const { layers, heads, tokens } = this.#shape;
    const sheet = new OffscreenCanvas(map.width, map.height);
    sheet.getContext("2d").putImageData(map, 0, 0);
    paint.clearRect(0, 0, paint.canvas.width, paint.canvas.height);
    paint.imageSmoothingEnabled = false;
    const size = tokens * CELL;
    for (let layer = 0; layer < layers; layer += 1) {
      for (let head = 0; head < heads; head += 1) {
        const [x, y] = [head * (size + GAP), layer * (size + GAP)];
        paint.save();
        paint.beginPath();
        paint.roundRect(x, y, size, size, 8);
        paint.clip();
        paint.drawImage(sheet, head * tokens, layer * tokens, tokens, tokens, x, y, size, size);
        paint.restore();
      }
    }
  }
}

const rgb = (name) => colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);

async function read(src) {
  const response = await fetch(src);
  if (!response.ok) throw new Error(`${response.status} for ${src}`);
  return new Uint8Array(await response.arrayBuffer());
}

customElements.define("attention-film", AttentionFilm);
