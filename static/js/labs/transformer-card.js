/** The card of a run: what was trained, how far it is, how good it got, how fast. */

import { clear, h } from "core/dom";
import { ago, compact, count, number } from "core/format";
import { pick, t } from "core/i18n";
import { textOf } from "labs/transformer-texts";
import { lossText } from "labs/transformer-words";

/** "English news, 4 × 4 heads" */
export function runName(params, texts) {
  const text = textOf(params, texts);
  const title = text ? pick(text.title) : params.data ? t("Own text") : t("Unknown text");
  return t("{text}, {layers} × {heads} heads", { text: title, layers: params.layers, heads: params.heads });
}

const fact = (name, value, title) => h("div", { class: "run-fact" }, h("dt", null, name), h("dd", { class: "number", title }, value));

/** `run` is a Run, or `{job}` of an ended one whose events were not read. */
export function runCard(host, run, texts) {
  const { job } = run;
  const result = run.end?.result ?? job.result ?? {};
  const setup = run.setup;
  const parameters = setup?.parameters ?? result.parameters;
  const steps = setup?.steps ?? job.params.steps;
  const done = run.last?.step ?? result.steps ?? 0;
  const loss = number(run.last?.loss ?? result.loss);
  const held = number(run.valLoss ?? result.val_loss);
  const speed = number(run.end ? result.tokens_per_s : run.last?.tokens_per_s ?? result.tokens_per_s);
  host.hidden = false;
  clear(host,
    h("h2", null, runName(job.params, texts)),
    h("p", { class: "caption" }, [
      parameters ? t("{n} parameters", { n: compact(parameters) }) : null,
      job.ended_at ? t("trained {when}", { when: ago(job.ended_at) }) : t("step {done} of {steps}", { done: count(done), steps: count(steps) }),
    ].filter(Boolean).join(" · ")),
    h("dl", { class: "run-facts" },
      fact(t("loss"), loss === null ? "–" : lossText(loss), loss === null ? null : String(loss)),
      fact(t("held out"), held === null ? "–" : lossText(held), held === null ? null : String(held)),
      fact(t("tokens/s"), speed === null || Number.isNaN(speed) ? "–" : count(Math.round(speed)))));
}
