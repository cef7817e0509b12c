/**
 * <step-player>: plays named steps; every lab's bottom bar.
 *
 *   player.steps = [{id, name, title?, group?}] // the track; `name` is short, `title` is the full sentence
 *   player.current = "softmax"               // without playing anything
 *   player.animate = async ({step, previous, speed, signal}) => {…}   // optional: enters a step
 *   player.follow = true                     // scrub variant: stay at the newest step
 *
 * Neighbours of one `group` stand together under its name. When not all names fit, only the current
 * group shows its own; the others keep a tick for each step.
 *
 * Attributes: `variant="scrub"` draws a plain slider for many steps; `label` names the track;
 * `dwell` is how long (ms at speed 1) a played step stays for reading; `play-word` is what the main
 * button says instead of "Play".
 * Fires `step-change` {id, index, how: "jump" | "play" | "follow"}, `play-change` {playing} and
 * `follow-change` {follow}.
 *
 * Keys anywhere on the page, unless a control that needs them has the focus: ← → back and next,
 * Home and End first and last, space play or pause. Any action finishes the running animation
 * first: its signal aborts, and `animate` must then show the end of the step at once.
 */

import { clear, emit, h } from "core/dom";
import { t } from "core/i18n";
import { icon } from "core/icons";
import { reducedMotion } from "core/motion";

const OWN_KEYS = "input, textarea, select, [contenteditable], [role='slider'], [role='grid'], [role='dialog']";

export class StepPlayer extends HTMLElement {
  #steps = [];
  #index = -1;
  #playing = false;
  #follow = false;
  #running = null;
  #timer = 0;

  connectedCallback() {
    if (!this.track) this.#build();
    this.keys ??= (event) => this.#key(event);
    document.addEventListener("keydown", this.keys);
  }

  disconnectedCallback() {
    document.removeEventListener("keydown", this.keys);
    this.pause();
    this.finish();
  }

  #build() {
    this.setAttribute("role", "group");
    const names = {
      first: t("First step"), back: t("Step back"), play: t("Play"), next: t("Next step"), last: t("Last step"),
    };
    const bar = h("div", { class: "player-buttons" });
    this.buttons = {};
    for (const [name, label] of Object.entries(names)) {
      const main = name === "play";
      this.buttons[name] = h("button", {
        type: "button", title: label, "aria-label": main ? null : label,
        class: main ? "button primary player-play" : "button player-button",
        onclick: () => this[name](),
      }, main ? null : icon(name)); // #render fills the main one: its icon and word change
      bar.append(this.buttons[name]);
    }
    this.track = h("div", { class: "player-track" });
    this.line = h("div", { class: "player-line" }, h("span", { class: "player-fill" }), h("span", { class: "player-thumb" }));
    this.line.addEventListener("pointerdown", (event) => this.#drag(event));
    this.slider = h("input", {
      class: "player-slider", type: "range", min: 0, step: 1, value: "0",
      "aria-label": this.getAttribute("label") ?? t("Steps"),
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.names = h("ol", { class: "player-names" });
    const named = this.getAttribute("variant") !== "scrub";
    this.track.append(...(named ? [this.line, this.names] : [this.slider]));
    this.resizer = new ResizeObserver(() => {
      this.#fold();
      this.#place();
    });
    this.resizer.observe(this.track);
    this.append(bar, this.track, this.#speedControl());
    this.#render();
  }

  #speedControl() {
    this.speedInput = h("input", { type: "range", min: -2, max: 2, step: 1, value: "0", oninput: () => this.#speedWords() });
    this.speedText = h("output", { class: "number" });
    this.#speedWords();
    return h("label", { class: "player-speed caption" }, h("span", null, t("speed")), this.speedInput, this.speedText);
  }

  #speedWords() {
    this.speedText.textContent = `${this.speed}×`;
    this.speedInput.setAttribute("aria-valuetext", `${this.speed}×`);
    this.speedInput.style.setProperty("--fill", String((Number(this.speedInput.value) + 2) / 4));
  }

  // ------------------------------------------------------------ properties

  get speed() {
    return 2 ** Number(this.speedInput?.value ?? 0);
  }

  get steps() {
    return this.#steps;
  }

  set steps(steps) {
    const id = this.#steps[this.#index]?.id;
    this.#steps = steps ?? [];
    const kept = this.#steps.findIndex((step) => step.id === id);
    this.#index = kept >= 0 ? kept : Math.min(Math.max(this.#index, -1), this.#steps.length - 1);
    if (!this.track) return;
    if (this.getAttribute("variant") !== "scrub") this.#drawNames();
    if (this.#follow && this.#index !== this.#steps.length - 1) this.#enter(this.#steps.length - 1, "follow");
    this.#render();
  }

  get current() {
    return this.#steps[this.#index]?.id ?? null;
  }

  set current(id) {
    this.#index = this.#steps.findIndex((step) => step.id === id);
    this.#render();
  }

  get index() {
    return this.#index;
  }

  get playing() {
    return this.#playing;
  }

  get follow() {
    return this.#follow;
  }

  set follow(follow) {
    if (this.#follow === Boolean(follow)) return;
    this.#follow = Boolean(follow);
    if (this.#follow && this.#steps.length) this.#enter(this.#steps.length - 1, "follow");
    emit(this, "follow-change", { follow: this.#follow });
  }

  // ------------------------------------------------------------ actions

  /** Jumps to a step by index; stops playing and following. */
  go(index, how = "jump") {
    this.pause();
    this.follow = false;
    this.#enter(index, how);
  }

  first() {
    this.go(0);
  }

  last() {
    this.go(this.#steps.length - 1);
  }

  back() {
    this.go(this.#index - 1);
  }

  next() {
    this.go(this.#index + 1);
  }

  play() {
    if (this.#playing) {
      this.pause();
      this.finish();
      return;
    }
    if (!this.#steps.length) return;
    this.#setPlaying(true);
    this.follow = false;
    this.#advance(this.#index >= this.#steps.length - 1 ? 0 : this.#index + 1);
  }

  pause() {
    clearTimeout(this.#timer);
    this.#setPlaying(false);
  }

  /** Ends the running animation at once; what it shows stays. */
  finish() {
    this.#running?.abort();
    this.#running = null;
  }

  async #advance(index) {
    await this.#enter(index, "play");
    if (!this.#playing) return;
    if (index >= this.#steps.length - 1) {
      this.pause();
      return;
    }
    const dwell = Number(this.getAttribute("dwell") ?? 1600) / this.speed;
    this.#timer = setTimeout(() => this.#playing && this.#advance(index + 1), dwell);
  }

  async #enter(index, how) {
    this.finish();
    const to = Math.max(0, Math.min(this.#steps.length - 1, index));
    if (!this.#steps.length || (to === this.#index && how !== "play")) return;
    const previous = this.#steps[this.#index] ?? null;
    this.#index = to;
    this.#render();
    const step = this.#steps[to];
    const control = new AbortController();
    this.#running = control;
    if (reducedMotion()) control.abort(); // reduced motion: the end of the animation, at once
    emit(this, "step-change", { id: step.id, index: to, how });
    await this.animate?.({ step, previous, how, speed: this.speed, signal: control.signal });
    if (this.#running === control) this.#running = null;
  }

  #setPlaying(playing) {
    if (this.#playing === playing) return;
    this.#playing = playing;
    this.#render();
    emit(this, "play-change", { playing });
  }

  // ------------------------------------------------------------ drawing

  #drawNames() {
    this.items = this.#steps.map((step, index) =>
      h("li", { class: "player-item" }, h("button", {
        type: "button", class: "player-name", title: step.title ?? step.name, onclick: () => this.go(index),
      }, h("span", null, step.name))));
    this.groups = [];
    this.#steps.forEach(({ group = null }, index) => {
      if (!index || group !== this.groups.at(-1).name) this.groups.push({ name: group, items: [] });
      this.groups.at(-1).items.push(this.items[index]);
    });
    for (const one of this.groups) {
      one.node = h("li", { class: "player-group" }, h("ol", { class: "player-steps", "aria-label": one.name }, one.items),
        one.name ? h("span", { class: "player-group-name", "aria-hidden": "true" }, one.name) : null);
    }
    this.names.replaceChildren(...this.groups.map((one) => one.node));
    this.#fold();
  }

  /** All names where they fit, else the current group's; the others shrink to ticks. */
  #fold() {
    if (!this.groups) return;
    this.names.classList.remove("folded");
    const folded = this.groups.length > 1 && this.names.scrollWidth > this.track.clientWidth;
    this.names.classList.toggle("folded", folded);
  }

  #render() {
    if (!this.track) return;
    const last = this.#steps.length - 1;
    const at = Math.max(this.#index, 0);
    this.slider.max = String(Math.max(last, 0));
    this.slider.value = String(at);
    this.slider.disabled = last < 1;
    this.slider.style.setProperty("--fill", String(last > 0 ? at / last : 0));
    const step = this.#steps[this.#index];
    this.slider.setAttribute("aria-valuetext", step ? step.title ?? step.name : "");
    this.buttons.first.disabled = this.buttons.back.disabled = this.#index <= 0;
    this.buttons.next.disabled = this.buttons.last.disabled = this.#index >= last;
    this.buttons.play.disabled = last < 1;
    const word = this.#playing ? t("Pause") : this.getAttribute("play-word") ?? t("Play");
    if (this.buttons.play.textContent !== word) {
      clear(this.buttons.play, icon(this.#playing ? "pause" : "play"), h("span", null, word));
      this.buttons.play.title = word;
    }
    for (const one of this.groups ?? []) one.node.classList.toggle("open", one.items.includes(this.items[this.#index]));
    this.items?.forEach((item, index) => {
      const button = item.firstElementChild;
      if (index === this.#index) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    this.#place();
  }

  /** The thumb stands over the current name, and that name in the middle when not all fit. */
  #place() {
    const item = this.items?.[this.#index];
    const [fill, thumb] = this.line.children;
    thumb.hidden = !item;
    if (!item) return;
    const centre = item.offsetLeft + item.offsetWidth / 2;
    this.line.style.width = `${this.names.scrollWidth}px`;
    fill.style.width = `${centre}px`;
    thumb.style.left = `${centre}px`;
    const room = this.track.clientWidth;
    if (this.names.scrollWidth > room) this.track.scrollLeft = centre - room / 2;
  }

  /** Dragging along the line picks the name beneath. */
  #drag(event) {
    const pickAt = ({ clientX }) => {
      const at = this.items.findIndex((item) => clientX < item.getBoundingClientRect().right);
      const index = at < 0 ? this.#steps.length - 1 : at;
      if (index !== this.#index) this.go(index);
    };
    const stop = () => this.line.removeEventListener("pointermove", pickAt);
    this.line.setPointerCapture(event.pointerId);
    this.line.addEventListener("pointermove", pickAt);
    this.line.addEventListener("pointerup", stop, { once: true });
    this.line.addEventListener("pointercancel", stop, { once: true });
    pickAt(event);
  }

  #key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!this.checkVisibility()) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(OWN_KEYS) && !this.contains(target)) return;
    if (target === this.speedInput) return;
    if (event.key === " ") {
      if (target.closest("button, a, summary")) return;
      this.play();
    } else if (event.key === "ArrowLeft") this.back();
    else if (event.key === "ArrowRight") this.next();
    else if (event.key === "Home") this.first();
    else if (event.key === "End") this.last();
    else return;
    event.preventDefault();
  }
}

customElements.define("step-player", StepPlayer);
