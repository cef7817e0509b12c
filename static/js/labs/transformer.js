/** The Transformer lab: two modes of one page, train and step, and the tabs between them. */

import { h, pageData } from "core/dom";
import { t } from "core/i18n";
import { listJobs } from "core/jobs";
import { state } from "core/view-state";
import { runCard } from "labs/transformer-card";
import { trainingRun } from "labs/transformer-run";
import { StepView } from "labs/transformer-step";
import { TrainView } from "labs/transformer-train";

const data = pageData("lab-data");
const places = Object.fromEntries(["left", "centre", "right", "player"].map((name) => [name, document.getElementById(`lab-${name}`)]));
const rooms = Object.fromEntries(["train", "step"].map((mode) => [mode, Object.fromEntries(
  Object.entries(places).map(([name, place]) => [name, place.appendChild(h("div", { class: `room room-${name}`, "data-mode": mode }))]),
)]));

const mode = () => (state.get("mode") === "step" ? "step" : "train");
const stepCard = rooms.step.left.appendChild(h("div", { class: "card run-card" }));
const train = new TrainView({ ...rooms.train, data, onStep: (job) => go("step", job), onRun: card });
const step = new StepView({ ...rooms.step, onTrain: () => go("train") });

function go(next, job = null) {
  const keep = next === "step" && job ? { run: job.id, trace: null, row: null, col: null } : { row: null, col: null, tensor: null };
  state.set({ mode: next === "train" ? null : next, ...keep }, { push: true });
}

function tabs() {
  const names = { train: t("Train"), step: t("Step through") };
  const bar = document.getElementById("lab-modes");
  for (const [name, label] of Object.entries(names)) {
    bar.append(h("button", { class: "mode-tab", type: "button", "data-mode": name, onclick: () => go(name) }, label));
  }
}

/** The step side's card, from the events of its run where the train side has read them. */
function card(run) {
  if (stepCard.dataset.run === run.id) runCard(stepCard, run, data.texts);
}

async function show() {
  const now = mode();
  for (const tab of document.querySelectorAll(".mode-tab")) tab.setAttribute("aria-pressed", String(tab.dataset.mode === now));
  for (const [name, own] of Object.entries(rooms)) {
    for (const room of Object.values(own)) room.hidden = name !== now;
  }
  step.active = now === "step";
  if (now === "step") await openStep();
}

/** The run to step through: the address's, else the newest that ended well. */
async function openStep() {
  const wanted = state.get("run");
  const found = wanted
    ? trainingRun(wanted)
    : listJobs({ kind: "transformer.train", state: "succeeded", limit: 1 }).then(({ items }) => items[0] ?? null);
  const { run = null, problem } = await found.then((job) => ({ run: job }), (error) => ({ problem: error }));
  stepCard.hidden = !run;
  stepCard.dataset.run = run?.id ?? "";
  if (run) card(train.run?.id === run.id ? train.run : { id: run.id, job: run, last: null, end: null, setup: null });
  if (problem) step.refuse(t("This run can't be opened"), problem.message);
  else await step.open(run);
}

tabs();
state.on(["mode", "run"], show); // one listener: both change at once, and the model opens once
await Promise.all([train.open(), show()]);
document.documentElement.dataset.ready = "true";
