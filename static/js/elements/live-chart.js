/**
 * <live-chart>: numbers of a run as they come. Every number is kept; only the drawing is thinned,
 * and it never takes more than about a tenth of the processor from the run it shows.
 *
 * Attributes
 *   label   what the chart shows, for screen readers
 *   name    beginning of the downloaded file's name
 * Properties
 *   panels      [{key, label, size: "large" | "small", scale: "linear" | "log", zero, ceiling}];
 *               a value above `ceiling` makes the panel logarithmic, and its label says so
 *   series      [{key, label, panel, role: "--value", unit, mode: "line" | "points", dash}]
 *   references  [{panel, value, label}]: dotted lines, such as the loss of guessing
 *   cursor      step at which a line stands and the readout reads; null follows the last step
 *   total       steps of the whole run: the x axis ends there until the run has ended
 * Methods
 *   add(step, values)   values by series key; tagged numbers and NaN make a gap
 *   event(ev)           metric, resumed, control, state and end events of a run
 *   mark(step, label, what)   a dashed line through all panels; one of a sort (`what`) a step
 *   rewind(step)        forgets everything after a step
 *   reset()             forgets everything
 *   preload()           fetches Plotly ahead of the first number
 * Events (bubble)
 *   chart-hover {step}   step or null
 *   chart-pick  {step}
 */
import { clear, download, emit, h } from "core/dom";
import { count, full, number, short, sig } from "core/format";
import { t } from "core/i18n";
import { icon } from "core/icons";
import { onTheme } from "core/theme";
import { ChartData, marksUpTo, thin } from "elements/chart-data";
import { buildLayout, buildTrace } from "elements/chart-layout";

const LEAST_PAUSE_MS = 350;
const SHARE_OF_TIME = 10; // pause at least this many times as long as the last drawing took
const TABLE_ROWS = 100;
const TABLE_PAUSE_MS = 1000;

let plotly = null;

/** Plotly, once a page. It is a classic script inside a module's clothes: it sets `Plotly`. */
function loadPlotly() {
  plotly ??= import("vendor/plotly").then(() => globalThis.Plotly);
  return plotly;
}

export class LiveChart extends HTMLElement {
  #panels = [];
  #series = [];
  #references = [];
  #marks = new Map();
  #data = new ChartData([]);
  #cursor = null;
  #hover = null;
  #total = null;
  #nodes = null;
  #places = new Map();
  #timer = 0;
  #drawn = false;
  #cost = 0;
  #last = 0;
  #seen = false;
  #over = false;
  #tableAt = 0;
  #stop = [];

  connectedCallback() {
    if (!this.#nodes) this.#build();
    const size = new ResizeObserver(() => this.#schedule());
    size.observe(this.#nodes.plot);
    const sight = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1).isIntersecting;
      if (this.#seen) this.#schedule();
    });
    sight.observe(this);
    const wake = () => document.hidden || this.#schedule();
    document.addEventListener("visibilitychange", wake);
    this.#stop = [
      () => size.disconnect(),
      () => sight.disconnect(),
      onTheme(() => this.#schedule()),
      () => document.removeEventListener("visibilitychange", wake),
    ];
    this.#readout();
  }

  disconnectedCallback() {
    for (const stop of this.#stop) stop();
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  set panels(panels) {
    this.#panels = panels;
    this.#schedule();
  }

  set series(series) {
    this.#series = series;
    this.#data = new ChartData(series.map((one) => one.key));
    this.#legend();
    this.#schedule();
  }

  set references(references) {
    this.#references = references;
    this.#schedule();
  }

  get cursor() {
    return this.#cursor;
  }

  set cursor(step) {
    this.#cursor = step;
    this.#readout();
    this.#placeCursor();
  }

  set total(total) {
    this.#total = total;
    this.#schedule();
  }

  /** The last step that has a number, −1 before the first. */
  get lastStep() {
    return this.#data.lastStep;
  }

  add(step, values) {
    this.#data.add(step, values);
    this.#schedule();
  }

  event({ type, data }) {
    if (type === "metric") this.add(number(data.step), data);
    else if (type === "resumed") this.rewind(data.from_step);
    else if (type === "control" && data.action === "set") this.mark(data.step, settings(data.values), "set");
    else if (type === "end") this.#finish();
    else if (type === "state" && data.state === "running" && data.attempt > 1) {
      this.mark(Math.max(0, this.lastStep), t("attempt {attempt}", { attempt: data.attempt }), "attempt");
    }
  }

  mark(step, label, what = label) {
    this.#marks.set(`${step} ${what}`, { step, label });
    this.#schedule();
  }

  rewind(step) {
    this.#data.cut(step);
    this.#schedule();
  }

  reset() {
    this.#data = new ChartData(this.#series.map((one) => one.key));
    this.#marks.clear();
    this.#over = false;
    this.#cursor = null;
    this.#total = null;
    this.#schedule();
    this.#readout();
  }

  preload() {
    return loadPlotly();
  }

  // Drawing

  #build() {
    const csv = h(
      "button",
      { type: "button", class: "button small quiet", onclick: () => this.#save() },
      icon("download"),
      "CSV",
    );
    this.#nodes = {
      legend: h("ul", { class: "chart-legend" }),
      plot: h("div", { class: "chart-plot", role: "img" }),
      figure: h("div", { class: "chart-figure" }),
      cursors: h("div", { class: "chart-cursors", "aria-hidden": "true" }),
      empty: h("p", { class: "chart-empty caption" }, t("The curves start with the first step.")),
      table: h("div", { class: "chart-table", tabindex: "0", role: "region", "aria-label": t("As a table") }),
      details: h("details", { class: "chart-details" }),
    };
    const n = this.#nodes;
    n.plot.append(n.figure, n.cursors, n.empty);
    n.details.append(
      h("summary", {}, h("span", { class: "button small quiet" }, icon("table"), t("As a table"))),
      n.table,
    );
    n.details.addEventListener("toggle", () => this.#table(true));
    clear(this, n.legend, n.plot, h("div", { class: "chart-foot" }, n.details, csv));
    this.#legend();
  }

  #legend() {
    if (!this.#nodes) return;
    clear(
      this.#nodes.legend,
      this.#series.map((one) =>
        h(
          "li",
          { class: `chart-key ${one.mode === "points" ? "points" : ""}`, dataset: { key: one.key } },
          h("span", { class: "chart-swatch", dataset: { role: one.role ?? "--accent" } }),
          h("span", { class: "chart-name" }, one.label),
          h("output", { class: "chart-value" }),
          one.unit && h("span", { class: "caption" }, one.unit),
        ),
      ),
    );
    for (const swatch of this.#nodes.legend.querySelectorAll(".chart-swatch")) {
      swatch.style.setProperty("--role", `var(${swatch.dataset.role})`);
    }
  }

  #readout() {
    if (!this.#nodes) return;
    const step = this.#hover ?? this.#cursor ?? this.#data.lastStep;
    const spoken = [];
    for (const one of this.#series) {
      const value = this.#data.columns.get(one.key)?.at(step) ?? null;
      const place = this.#nodes.legend.querySelector(`[data-key="${one.key}"] output`);
      place.textContent = value !== null && value > 9999 ? count(value) : sig(value);
      place.title = full(value);
      if (value !== null) spoken.push(`${one.label} ${place.textContent} ${one.unit ?? ""}`.trim());
    }
    const label = this.getAttribute("label") ?? "";
    const summary = step >= 0 ? t("step {step}: {values}", { step, values: spoken.join(", ") }) : "";
    this.#nodes.plot.setAttribute("aria-label", [label, summary].filter(Boolean).join(". "));
  }

  #schedule() {
    if (!this.#nodes) return;
    this.#nodes.empty.hidden = this.#data.length > 0;
    if (this.#timer || !this.isConnected) return;
    // Once the run has ended there is nothing to spare the processor for.
    const pause = this.#over ? this.#cost : Math.max(LEAST_PAUSE_MS, this.#cost * SHARE_OF_TIME);
    const wait = Math.max(0, this.#last + pause - performance.now());
    this.#timer = setTimeout(() => {
      requestAnimationFrame(() => {
        this.#timer = 0;
        if (this.#seen && !document.hidden) this.#draw();
      });
    }, wait);
  }

  /** The log is complete: what waits for its turn is drawn now. */
  #finish() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#schedule();
  }

  async #draw() {
    this.#readout();
    this.#table(false);
    if (this.#data.length === 0 && !this.#drawn) return;
    const library = await loadPlotly();
    const width = Math.floor(this.#nodes.plot.clientWidth);
    if (width < 40) return;
    const before = performance.now();
    const { traces, layout } = this.#figure(width);
    const options = { displayModeBar: false, responsive: false, doubleClick: false };
    await library.react(this.#nodes.figure, traces, layout, options);
    this.#last = performance.now();
    this.#cost = this.#drawn ? this.#last - before : 0; // the first one also builds the figure
    if (!this.#drawn) this.#listen();
    this.#drawn = true;
    this.#placeCursor();
  }

  #figure(width) {
    const last = this.#data.lastStep;
    const { layout, at } = buildLayout({
      panels: this.#panels.map((panel) => this.#scaled(panel)),
      width,
      references: this.#references,
      marks: marksUpTo(this.#marks.values(), Math.max(last, 0)),
      gaps: this.#gaps(),
      xTitle: t("step"),
      range: [0, this.#until()],
    });
    this.#places = at;
    const traces = this.#series.map((one) => {
      const place = at.get(one.panel);
      const buckets = Math.max(100, Math.round(width * (place.x[1] - place.x[0])));
      return buildTrace(one, thin(this.#data.columns.get(one.key), buckets), place);
    });
    return { traces, layout };
  }

  /** Where the x axis ends: at the run's length while it goes on, then at the last step it did. */
  #until() {
    return Math.max(this.#over ? 0 : (this.#total ?? 0), this.#data.lastStep, 1);
  }

  /** A panel that would hide all else under one huge value becomes logarithmic. */
  #scaled(panel) {
    const mine = this.#series.filter((one) => one.panel === panel.key);
    if (!panel.ceiling || this.#data.highest(mine) <= panel.ceiling) return panel;
    return { ...panel, scale: "log", label: t("{label}, log scale", { label: panel.label }) };
  }

  #gaps() {
    return this.#series.flatMap((one) =>
      this.#data
        .gaps(one.key)
        .map(([from, to]) => ({ panel: one.panel, from, to, label: t("not finite") })),
    );
  }

  #listen() {
    const { figure } = this.#nodes;
    figure.on("plotly_hover", ({ points }) => this.#hovered(Math.round(points[0].x)));
    figure.on("plotly_unhover", () => this.#hovered(null));
    figure.on("plotly_click", ({ points }) => emit(this, "chart-pick", { step: Math.round(points[0].x) }));
  }

  #hovered(step) {
    this.#hover = step;
    this.#readout();
    emit(this, "chart-hover", { step });
  }

  /** The cursor is an element over the figure: moving it redraws nothing. */
  #placeCursor() {
    if (!this.#drawn) return;
    const { cursors, figure } = this.#nodes;
    const height = figure.clientHeight;
    const share = this.#cursor === null ? null : this.#cursor / this.#until();
    clear(
      cursors,
      share === null || share < 0 || share > 1
        ? null
        : [...this.#places.values()].map(({ x, y }) => {
            const line = h("span", { class: "chart-cursor" });
            line.style.left = `${(x[0] + share * (x[1] - x[0])) * 100}%`;
            line.style.top = `${(1 - y[1]) * height}px`;
            line.style.height = `${(y[1] - y[0]) * height}px`;
            return line;
          }),
    );
  }

  // The same numbers as text

  #table(now) {
    const { details, table } = this.#nodes;
    if (!details.open || (!now && performance.now() - this.#tableAt < TABLE_PAUSE_MS)) return;
    this.#tableAt = performance.now();
    const steps = this.#data.steps();
    const shown = evenly(steps, TABLE_ROWS);
    const head = h("tr", {}, h("th", { scope: "col", class: "number" }, t("step")));
    for (const one of this.#series) {
      const unit = one.unit ? ` (${one.unit})` : "";
      head.append(h("th", { scope: "col", class: "number" }, one.label + unit));
    }
    const row = (step) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", class: "number" }, count(step)),
        this.#series.map((one) => {
          const value = this.#data.exact(one.key, step);
          return h("td", { class: "number", title: full(value) }, value === null ? "" : sig(value));
        }),
      );
    const sizes = { shown: count(shown.length), all: count(steps.length) };
    clear(
      table,
      h("p", { class: "caption" }, t("shown {shown} of {all} steps; the CSV file has all", sizes)),
      h("table", {}, h("thead", {}, head), h("tbody", {}, shown.map(row))),
    );
  }

  #save() {
    download(`${this.getAttribute("name") ?? "metrics"}.csv`, this.#data.csv(), "text/csv");
  }
}

function evenly(list, most) {
  if (list.length <= most) return list;
  const stride = (list.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, i) => list[Math.round(i * stride)]);
}

const settings = (values) =>
  Object.entries(values ?? {})
    .map(([name, value]) => `${name} ${short(value)}`)
    .join(", ");

customElements.define("live-chart", LiveChart);
