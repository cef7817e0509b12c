/**
 * <job-status>: where a job stands and what can be done about it. Queue place, state, progress,
 * time left; pause, resume, step, cancel; a failure as a sentence with a next step.
 *
 * Attributes
 *   until-end   hides once the job has ended: the page itself says how it went
 * Properties
 *   job         the job's row (REST or socket snapshot); null empties the element
 *   pending     true from the click until the server has answered
 *   connection  "live" | "reconnecting" | "lagging"
 *   controls    which buttons may appear; by default what the job's kind allows
 * Methods
 *   event(ev)   takes state, progress, control, resumed and end events; ignores the rest
 * Events
 *   job-control {id, action}   bubbles, cancelable; unless prevented the element asks the server
 */
import { clear, emit, h } from "core/dom";
import { count, duration, percent } from "core/format";
import { messageOf, msg, t } from "core/i18n";
import { icon } from "core/icons";
import { control, ended, kind } from "core/jobs";

const STATES = {
  pending: msg("Sending"),
  queued: msg("Waiting"),
  starting: msg("Starting"),
  running: msg("Running"),
  paused: msg("Paused"),
  succeeded: msg("Done"),
  failed: msg("Failed"),
  canceled: msg("Cancelled"),
  aborted: msg("Cancelled before it started"),
};

const ADVICE = {
  deadline_exceeded: msg("Ask for less, or run it in smaller pieces."),
  out_of_memory: msg("Make the model, the batch or the text smaller."),
  worker_lost: msg("Run it again. If it happens twice, look at the server's log."),
  diverged: msg("Lower the learning rate and run it again. The last good checkpoint is kept."),
  quota_exceeded: msg("Delete runs you no longer need, or wait for one to end."),
  internal: msg("Run it again. The server's log has the details."),
};

const BUTTONS = [
  { action: "pause", icon: "pause", label: msg("Pause"), states: ["running"] },
  { action: "resume", icon: "play", label: msg("Resume"), states: ["paused"] },
  { action: "step", icon: "step", label: msg("One step"), states: ["paused"] },
  {
    action: "cancel",
    icon: "stop",
    label: msg("Cancel"),
    states: ["queued", "starting", "running", "paused"],
  },
];

export class JobStatus extends HTMLElement {
  #job = null;
  #state = null;
  #progress = null;
  #end = null;
  #pending = false;
  #connection = "live";
  #controls = null;
  #asked = null;
  #refusal = "";
  #nodes = null;

  connectedCallback() {
    if (!this.#nodes) this.#build();
    this.#paint();
  }

  get job() {
    return this.#job;
  }

  set job(job) {
    const other = job?.id !== this.#job?.id;
    if (other) {
      this.#progress = null;
      this.#end = null;
      this.#asked = null;
      this.#refusal = "";
      this.#controls = null;
      if (job) this.#learnControls(job.kind);
    }
    this.#job = job;
    this.#pending = false;
    if (job) {
      this.#setState(job.state);
      if (job.progress && !this.#progress) this.#progress = job.progress;
    }
    this.#paint();
  }

  set pending(pending) {
    this.#pending = pending;
    this.#paint();
  }

  set connection(status) {
    this.#connection = status;
    this.#paint();
  }

  set controls(controls) {
    this.#controls = new Set(controls);
    this.#paint();
  }

  event({ type, data }) {
    if (type === "state") this.#setState(data.state);
    else if (type === "progress") this.#progress = data;
    else if (type === "end") {
      this.#end = data;
      this.#setState(data.state);
    } else if (type === "control" && data.action === this.#asked) this.#asked = null;
    else return;
    this.#paint();
  }

  #setState(state) {
    if (state !== this.#state) this.#asked = null;
    this.#state = state;
  }

  async #learnControls(name) {
    const schema = await kind(name).catch(() => null);
    if (schema && this.#job?.kind === name && !this.#controls) this.controls = schema.controls;
  }

  async #ask(action) {
    const { id } = this.#job;
    this.#asked = action;
    this.#refusal = "";
    this.#paint();
    if (!emit(this, "job-control", { id, action }, { cancelable: true })) return;
    try {
      await control(id, action);
    } catch (problem) {
      this.#asked = null;
      this.#refusal = problem.message;
      this.#paint();
    }
  }

  #build() {
    const part = (name, tag = "div", more = {}) => h(tag, { class: `job-${name}`, ...more });
    this.#nodes = {
      dot: part("dot", "span", { "aria-hidden": "true" }),
      state: part("state", "span", { role: "status" }),
      left: part("left", "span"),
      bar: h("div", { class: "job-bar", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }),
      fill: part("fill"),
      count: part("count", "p", { class: "job-count caption number" }),
      link: part("link", "p", { class: "job-link caption", role: "status" }),
      problem: part("problem", "div", { class: "notice error", role: "alert" }),
      buttons: part("buttons"),
    };
    const n = this.#nodes;
    n.bar.append(n.fill);
    n.buttonOf = new Map(
      BUTTONS.map((button) => [
        button.action,
        h(
          "button",
          {
            type: "button",
            class: `button small ${button.action === "cancel" ? "danger" : ""}`,
            onclick: () => this.#ask(button.action),
          },
          icon(button.icon),
          t(button.label),
        ),
      ]),
    );
    n.buttons.append(...n.buttonOf.values());
    clear(
      this,
      h("div", { class: "job-line" }, n.dot, n.state, n.left),
      n.bar,
      n.count,
      n.link,
      n.problem,
      n.buttons,
    );
  }

  #paint() {
    if (!this.#nodes) return;
    const state = this.#pending ? "pending" : this.#state;
    const over = this.hasAttribute("until-end") && ended({ state });
    this.hidden = (!this.#job && !this.#pending) || over;
    if (this.hidden) return;
    this.dataset.state = state;
    this.#nodes.state.textContent = this.#sentence(state);
    this.#paintProgress(state);
    this.#paintLink(state);
    this.#paintProblem(state);
    for (const { action, states } of BUTTONS) {
      const button = this.#nodes.buttonOf.get(action);
      const allowed = action === "cancel" || this.#controls?.has(action);
      button.hidden = !allowed || !states.includes(state);
      button.disabled = this.#asked !== null && this.#asked !== "step";
      button.toggleAttribute("aria-busy", this.#asked === action);
    }
    this.#nodes.buttons.hidden = [...this.#nodes.buttonOf.values()].every((one) => one.hidden);
  }

  #sentence(state) {
    const place = this.#job?.place;
    if (state === "queued" && place > 1) return t("Waiting, place {place} in the queue", { place });
    if (state === "queued" && place === 1) return t("Waiting, next in the queue");
    if (this.#asked === "cancel" && !ended(this.#job)) return t("Cancelling");
    if (this.#asked === "pause") return t("Pausing after this step");
    const attempt = this.#job?.attempt ?? 1;
    if (state === "running" && attempt > 1) return t("Running, attempt {attempt}", { attempt });
    return t(STATES[state] ?? state);
  }

  #paintProgress(state) {
    const { bar, fill, count: line, left } = this.#nodes;
    const { done = 0, total = 0, eta_s: eta } = this.#progress ?? {};
    const known = total > 0 && state !== "pending";
    const share = known ? Math.min(1, done / total) : 0;
    const waiting = ["pending", "queued", "starting"].includes(state);
    bar.hidden = !known && !waiting && state !== "running";
    bar.classList.toggle("unknown", !known && !bar.hidden);
    fill.style.setProperty("--share", share);
    if (known) bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    else bar.removeAttribute("aria-valuenow");
    bar.setAttribute("aria-label", t("Progress"));
    line.hidden = !known;
    const numbers = { done: count(done), total: count(total), percent: percent(share) };
    line.textContent = known ? t("{done} of {total} · {percent}", numbers) : "";
    const running = state === "running" && Number.isFinite(eta) && eta > 0;
    left.textContent = running ? t("{time} left", { time: duration(eta) }) : "";
  }

  #paintLink(state) {
    const { link } = this.#nodes;
    const text = {
      reconnecting: t("Connection lost. Trying again; nothing is lost."),
      lagging: t("Catching up with the stream."),
    }[this.#connection];
    link.hidden = !text || ended(this.#job) || state === "pending";
    link.textContent = text ?? "";
  }

  #paintProblem(state) {
    const { problem } = this.#nodes;
    const failed = state === "failed";
    problem.hidden = !failed && !this.#refusal;
    if (problem.hidden) return;
    const reason = this.#end?.reason ?? this.#job?.reason;
    const said = failed ? messageOf(this.#end) || this.#job?.message || t("It failed.") : "";
    const advice = failed && ADVICE[reason] ? t(ADVICE[reason]) : "";
    clear(
      problem,
      [said, advice, this.#refusal].filter(Boolean).map((text) => h("p", {}, text)),
    );
  }
}

customElements.define("job-status", JobStatus);
