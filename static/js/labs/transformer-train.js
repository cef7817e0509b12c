/**
 * The train view: choose, press Play, and see loss, samples and every head's attention change.
 * The run is in the address; all that is shown is rebuilt from its events.
 */

import { clear, h } from "core/dom";
import { count, number, sig } from "core/format";
import { t, tn } from "core/i18n";
import { control, ended, listJobs, submit } from "core/jobs";
import { rem } from "core/theme";
import { listUploads } from "core/uploads";
import { state } from "core/view-state";
import "elements/job-status";
import "elements/live-chart";
import "elements/params-form";
import "elements/step-player";
import { headProblems, parameterCount } from "labs/transformer-diagram";
import { LiveSettings } from "labs/transformer-live";
import { Maps } from "labs/transformer-maps";
import { plan } from "labs/transformer-plan";
import { KIND, Run, trainingRun } from "labs/transformer-run";
import { runCard, runName } from "labs/transformer-card";
import { textOf } from "labs/transformer-texts";
import * as words from "labs/transformer-words";

const CEILING = 3; // times the loss of guessing: a curve that goes higher needs a log scale

const LOSS_PANEL = () => ({ key: "loss", label: t("loss (nats a token)"), size: "large" });

/** One column, as the style sheet stacks it. */
const narrow = () => innerWidth < 48 * rem();

export class TrainView {
  constructor({ left, centre, right, player, data, onStep, onRun }) {
    Object.assign(this, { left, centre, player, data, onStep, onRun, run: null, jobs: [] });
    this.#left();
    this.#centre();
    this.#player();
    this.maps = new Maps({ grid: this.gridBox, large: this.largeBox, why: right.appendChild(h("div", { class: "stack why" })) });
    state.on(["run"], () => state.get("run") && state.get("run") !== this.run?.id && this.#openId(state.get("run")));
    state.on(["at"], () => this.#scrubbed());
    state.on(["layer", "head"], () => this.maps.refresh());
  }

  #left() {
    this.card = h("div", { class: "card run-card", hidden: true });
    this.status = h("job-status", { "until-end": true }); // then headline and banner say how it ended
    this.live = new LiveSettings({ kind: KIND, onSet: (values) => this.#control("set", values) });
    this.form = h("params-form", { kind: KIND, main: "data layers heads d_model steps lr" });
    this.form.presets = this.data.presets;
    this.form.check = (values) => headProblems(values, this.form.schema.params.properties);
    this.form.visible = { text: () => false }; // for scripts: here one's own text is uploaded
    this.formBox = h("details", { class: "new-run", open: true }, h("summary", { class: "overline" }, t("New run")), this.form);
    this.history = h("details", { class: "earlier-runs", open: !narrow(), hidden: true });
    this.left.append(this.card, this.status, this.live.node, this.formBox, this.history);
    this.form.addEventListener("params-ready", () => this.#preview());
    this.form.addEventListener("params-change", () => this.#preview());
    this.form.addEventListener("params-submit", () => this.play());
  }

  #centre() {
    this.title = h("h1", { class: "step-title" });
    this.line = h("p", { class: "lead", "data-testid": "train-sentence" });
    this.banner = h("div", { class: "train-banner", hidden: true });
    this.chart = h("live-chart", { label: t("Loss by step"), name: "loss" });
    this.chart.panels = [LOSS_PANEL()];
    this.chart.series = [
      { key: "loss", label: t("training"), panel: "loss", role: "--accent" },
      { key: "val_loss", label: t("held out"), panel: "loss", role: "--key", mode: "points" },
    ];
    this.gauges = h("live-chart", { label: t("Learning rate, gradient norm and speed by step"), name: "training" });
    this.gauges.panels = [
      { key: "lr", label: t("learning rate"), size: "small", zero: true },
      { key: "grad", label: t("gradient norm"), size: "small", zero: true },
      { key: "speed", label: t("tokens/s"), size: "small", zero: true },
    ];
    this.gauges.series = [
      { key: "lr", label: t("learning rate"), panel: "lr", role: "--residual" },
      { key: "grad_norm", label: t("gradient norm"), panel: "grad", role: "--gradient" },
      { key: "tokens_per_s", label: t("tokens/s"), panel: "speed", role: "--value" },
    ];
    this.charts = [this.chart, this.gauges];
    this.chartBox = h("div", { class: "card chart-card" }, this.chart);
    this.gaugesBox = h("div", { class: "card chart-card" }, this.gauges);
    this.gridBox = h("div");
    this.largeBox = h("div");
    this.mapsNote = h("p", { class: "caption", "data-testid": "maps-step" });
    this.mapsBox = h("section", { class: "card maps-card" },
      h("div", { class: "row spread" }, h("h2", null, t("Where every head looks")), this.mapsNote),
      h("div", { class: "maps" }, this.gridBox, this.largeBox));
    this.samples = h("ol", { class: "samples", "data-testid": "samples" });
    this.samplesBox = h("section", { class: "card" }, h("h2", null, t("What it writes")), this.samples);
    this.modelBox = h("section", { class: "card model-card" });
    this.centre.append(this.title, this.line, this.banner, this.chartBox, this.mapsBox, this.samplesBox, this.gaugesBox, this.modelBox);
    for (const chart of this.charts) chart.addEventListener("chart-pick", (event) => this.#nearest(event.detail.step));
  }

  #player() {
    this.playButton = h("button", { class: "button primary big play-train", type: "button", "data-testid": "play", onclick: () => this.play() }, t("Play"));
    this.stepButton = h("button", { class: "button", type: "button", hidden: true, onclick: () => this.#control("step") }, t("One step"));
    this.bar = h("step-player", { variant: "scrub", label: t("Snapshots of attention"), "play-word": t("Replay"), dwell: "350" });
    this.bar.follow = true;
    this.followButton = h("button", { class: "button small", type: "button", hidden: true, onclick: () => { this.bar.follow = true; } }, t("Follow the newest"));
    this.bar.addEventListener("step-change", (event) => {
      state.set({ at: event.detail.how === "follow" ? null : event.detail.id });
      this.#drawMaps();
    });
    this.bar.addEventListener("follow-change", (event) => {
      if (event.detail.follow) state.set({ at: null });
      this.#buttons();
    });
    this.player.append(h("div", { class: "train-controls" }, this.playButton, this.stepButton), this.bar, this.followButton);
  }

  // ------------------------------------------------------------ which run

  /** Opens the run of the address, else the one that runs, else the newest that has ended well. */
  async open() {
    this.chart.preload();
    const [{ items }] = await Promise.all([
      listJobs({ kind: KIND, limit: 12 }).catch(() => ({ items: [] })),
      listUploads("text").catch(() => []), // runs are named after them
    ]);
    this.jobs = items;
    const wanted = state.get("run");
    const job = wanted ? items.find((one) => one.id === wanted) : items.find((one) => !ended(one)) ?? items.find((one) => one.state === "succeeded");
    if (wanted && !job) await this.#openId(wanted);
    else if (job) this.#adopt(job);
    else this.#update();
    this.#history();
  }

  async #openId(id) {
    try {
      const job = await trainingRun(id);
      if (state.get("run") === id) this.#adopt(job);
    } catch (problem) {
      if (state.get("run") === id) this.#refuse(problem);
    }
  }

  /** The address stays as it is, for it may be a typing error; nothing of another run is shown. */
  #refuse(problem) {
    this.#leave();
    this.run = null;
    this.bar.steps = [];
    this.refusal = { title: t("This run can't be opened"), text: problem.message };
    this.status.job = null;
    this.#fold();
    this.#update();
    this.#history();
  }

  #leave() {
    this.run?.close();
    for (const chart of this.charts) chart.reset();
    this.maps.reset();
    clear(this.samples);
    this.drawn = null;
  }

  #adopt(job) {
    this.#leave();
    this.refusal = null;
    this.live.open(job.params);
    if (!/^\d+$/.test(state.get("at") ?? "0")) state.set({ at: null });
    this.status.job = job;
    this.status.controls = ["cancel"]; // pause, resume and step stand in the player
    this.bar.steps = [];
    this.bar.follow = state.get("at") === null;
    this.run = new Run(job, {
      onEvent: (event) => {
        for (const chart of this.charts) chart.event(event);
        this.status.event(event);
        this.live.event(event);
        if (event.type === "frame" && event.data.name === "setup") this.#setup(event.data);
      },
      onChange: () => this.#update(),
      onStatus: (status) => { this.status.connection = status; },
      onError: (problem) => this.#refuse(problem),
    });
    this.#fold();
    this.#update();
  }

  /** The form makes room for a run that goes on, and on narrow windows for any run. */
  #fold() {
    this.formBox.open = !this.run || (this.run.ended && !narrow());
  }

  #setup(setup) {
    for (const chart of this.charts) chart.total = setup.steps;
    this.chart.panels = [{ ...LOSS_PANEL(), ceiling: CEILING * setup.uniform_loss }];
    this.chart.references = [{ panel: "loss", value: setup.uniform_loss, label: t("guessing: ln {v}", { v: setup.vocab_size }) }];
    this.maps.probe = setup.probe;
  }

  #history() {
    const others = this.jobs.filter((job) => job.id !== this.run?.id).slice(0, 8);
    this.history.hidden = !others.length;
    clear(this.history, h("summary", { class: "overline" }, t("Earlier runs")), h("ul", { class: "run-list" }, others.map((job) =>
      h("li", null, h("button", { class: "run-link", type: "button", onclick: () => this.#choose(job) },
        h("span", null, runName(job.params, this.data.texts)), h("span", { class: "caption" }, words.outcome(job)))))));
  }

  #choose(job) {
    state.set({ run: job.id, at: null, trace: null, row: null, col: null, tensor: null }, { push: true });
    if (this.run?.id !== job.id) this.#adopt(job);
    this.#history();
  }

  // ------------------------------------------------------------ acting

  /** The one big button: train, pause or resume, whatever the run needs now. */
  play() {
    const now = this.run && !this.run.ended ? this.run.state : null;
    if (now === "running") this.#control("pause");
    else if (now === "paused") this.#control("resume");
    else if (!now) this.#submit();
  }

  async #submit() {
    if (this.pending) return;
    this.pending = true;
    this.status.pending = true;
    this.form.clearProblems();
    this.#buttons();
    try {
      const job = await submit(KIND, this.form.values);
      this.jobs.unshift(job);
      state.set({ run: job.id, at: null, trace: null, step: null, row: null, col: null, tensor: null }, { push: true });
      this.#adopt(job);
      this.#history();
    } catch (problem) {
      this.formBox.open = true;
      this.form.showProblems(problem);
      this.status.pending = false;
      if (!problem.errors?.length) this.#say(t("The run could not start"), problem.message);
    } finally {
      this.pending = false;
      this.#buttons();
    }
  }

  async #control(action, values = null) {
    try {
      await control(this.run.id, action, values);
    } catch (problem) {
      if (action === "set") this.live.form.showProblems(problem);
      else this.#say(t("That was refused"), problem.message);
    }
  }

  // ------------------------------------------------------------ showing

  #update() {
    const { run } = this;
    this.#buttons();
    const busy = Boolean(run && !run.ended);
    if (busy !== this.busy) this.#fold();
    this.busy = busy;
    this.live.node.hidden = !(run && ["running", "paused"].includes(run.state));
    this.chartBox.hidden = this.gaugesBox.hidden = this.samplesBox.hidden = !run;
    this.modelBox.hidden = Boolean(run?.snapshots.length);
    this.mapsBox.hidden = !run?.snapshots.length;
    if (!run) {
      this.#intro();
      return;
    }
    runCard(this.card, run, this.data.texts);
    this.onRun(run);
    const { title, text } = words.running(run);
    this.#say(title, text);
    this.#banner();
    if (this.bar.steps.length !== run.snapshots.length) {
      this.bar.steps = run.snapshots.map((one) => ({ id: String(one.step), name: String(one.step), title: t("step {n}", { n: one.step }) }));
      this.#scrubbed();
      this.#drawMaps();
    }
    this.#drawSamples();
  }

  #say(title, text) {
    if (this.title.textContent !== title) this.title.textContent = title;
    clear(this.line, text);
  }

  #intro() {
    const { values } = this.form;
    const text = textOf(values, this.data.texts);
    if (this.refusal) this.#say(this.refusal.title, this.refusal.text);
    else this.#say(t("A Transformer that knows nothing yet"), text ? words.plan(values, text) : "");
    this.banner.hidden = true;
    this.card.hidden = true;
  }

  /** The model as chosen in the form: its diagram, its size, the sentence it will be watched on. */
  #preview() {
    const { values } = this.form;
    const text = textOf(values, this.data.texts);
    const vocabulary = text?.vocabulary ?? 0;
    const sound = Number.isFinite(values.layers * values.heads * values.d_model) && values.d_model % values.heads === 0;
    if (!text) this.form.note = "";
    if (sound && text) {
      const total = parameterCount(values, vocabulary);
      const size = { n: count(values.steps), parameters: count(total), batch: values.batch, block: values.block };
      this.form.note = tn("{parameters} parameters · {n} step of {batch} × {block} tokens", "{parameters} parameters · {n} steps of {batch} × {block} tokens", values.steps, size);
      plan(this.modelBox, values, text, vocabulary);
    }
    if (!this.run) this.#intro();
  }

  #banner() {
    const { run } = this;
    const show = run.state === "succeeded";
    const failed = run.state === "failed";
    const halfway = ["paused", "canceled"].includes(run.state); // the weights so far are saved
    this.banner.hidden = !show && !failed && !halfway;
    const reason = run.end?.reason ?? run.job.reason;
    const key = [run.id, run.state, reason, run.message].join();
    if (this.banner.dataset.for === key) return;
    this.banner.dataset.for = key;
    clear(this.banner,
      failed ? h("p", { class: "notice error", role: "alert", "data-testid": "failure" }, run.message) : null,
      show || halfway || reason === "diverged"
        ? h("button", { class: `button big ${show ? "primary" : ""}`, type: "button", "data-testid": "step-through", onclick: () => this.onStep(run.job) }, t("Step through its attention"))
        : null);
  }

  #buttons() {
    const now = this.pending ? "pending" : this.run && !this.run.ended ? this.run.state : "idle";
    const label = { pending: t("Sending…"), queued: t("Waiting…"), starting: t("Starting…"), running: t("Pause"), paused: t("Resume"), idle: this.run ? t("Train again") : t("Play") }[now];
    if (this.playButton.textContent !== label) this.playButton.textContent = label;
    this.playButton.dataset.state = now;
    // At the end the next thing to do is to step through: one primary button on the page.
    this.playButton.classList.toggle("primary", !(now === "idle" && this.run?.state === "succeeded"));
    this.playButton.disabled = ["pending", "queued", "starting"].includes(now);
    this.stepButton.hidden = now !== "paused";
    this.bar.hidden = !this.run?.snapshots.length;
    this.followButton.hidden = this.bar.follow || now === "idle" || !this.run?.snapshots.length;
  }

  // ------------------------------------------------------------ scrubbing

  #scrubbed() {
    const at = state.get("at");
    if (at === null) {
      this.bar.follow = true;
      return;
    }
    const best = this.#closest(Number(at));
    if (best < 0) return;
    const id = String(this.run.snapshots[best].step);
    this.bar.follow = false;
    if (this.bar.current !== id) {
      this.bar.current = id;
      this.#drawMaps();
    }
    if (this.run.end) state.set({ at: id }); // before the end, the very step may still come
  }

  /** The index of the snapshot next to a step; −1 without any. */
  #closest(step) {
    const list = this.run?.snapshots ?? [];
    const far = list.map((one) => Math.abs(one.step - step));
    return far.indexOf(Math.min(...far));
  }

  #nearest(step) {
    const best = this.#closest(step);
    if (best >= 0) this.bar.go(best);
  }

  async #drawMaps() {
    const { run } = this;
    const snapshot = run?.snapshots[this.bar.index];
    if (!snapshot) return;
    const newest = snapshot === run.snapshots.at(-1);
    this.mapsNote.textContent = newest && !run.ended ? t("step {n}, the newest", { n: snapshot.step }) : t("step {n}", { n: snapshot.step });
    for (const chart of this.charts) chart.cursor = newest ? null : snapshot.step;
    this.#markSample(snapshot.step);
    const turn = (this.turn = Symbol("turn"));
    try {
      const maps = await run.attention(snapshot);
      if (turn === this.turn) this.maps.show(maps, snapshot.step);
    } catch {
      if (turn === this.turn) this.mapsNote.textContent = t("The maps of step {n} could not be read.", { n: snapshot.step });
    }
  }

  #drawSamples() {
    const { samples, setup } = this.run;
    const key = samples.map((one) => one.step).join();
    if (key === this.drawn) return;
    this.drawn = key;
    clear(this.samples, [...samples].reverse().map((one) => h("li", { dataset: { step: one.step } },
      h("span", { class: "caption number" }, t("step {n}", { n: one.step }), " · ", t("loss {x}", { x: words.lossText(one.loss) }),
        setup && number(one.loss) > 0.8 * setup.uniform_loss ? [" · ", t("barely trained: guessing costs {x}", { x: sig(setup.uniform_loss, 3) })] : null),
      h("p", { class: "sample", dir: "auto" }, one.text))));
    this.#markSample(this.run.snapshots[this.bar.index]?.step ?? Infinity);
  }

  #markSample(step) {
    const items = [...this.samples.children];
    const at = items.find((item) => Number(item.dataset.step) <= step);
    for (const item of items) item.classList.toggle("current", item === at);
  }
}
