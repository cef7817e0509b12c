/** The train view's headline and sentence: what is true of the run right now. */

import { ago, compact, count, number, short, sig } from "core/format";
import { pick, t, tn } from "core/i18n";

const LEARNED = 0.9; // of the first loss: above it, the fall may be the noise of single batches

/** A loss in three digits; a diverged one as large counts are: 1,560, 228k. */
export const lossText = (loss) => (number(loss) >= 1000 ? compact(loss) : sig(loss, 3));

/** Before any run: what is about to happen. */
export function plan(values, text) {
  return t("A model of {layers} × {heads} heads will read {text}: {tokens} characters, {vocabulary} of them distinct. Its only task is to guess the next one.", {
    layers: values.layers, heads: values.heads, text: pick(text.title), tokens: count(text.tokens), vocabulary: count(text.vocabulary),
  });
}

/** Title and sentence of a run. */
export function running(run) {
  const loss = number(run.last?.loss);
  const { state, setup } = run;
  if (state === "queued") return { title: t("Waiting for a free place"), text: t("The run starts by itself as soon as one is free.") };
  if (!run.last) {
    if (run.ended) return { title: ENDINGS[state]?.(run) ?? t("The run has ended"), text: "" };
    return { title: t("Starting"), text: t("The text is read and the weights are drawn at random.") };
  }
  const title = ENDINGS[state]?.(run) ?? (state === "paused"
    ? t("Paused at step {step}: loss {loss}", { step: count(run.last.step), loss: lossText(loss) })
    : t("Step {step}: loss {loss}", { step: count(run.last.step), loss: lossText(loss) }));
  return { title, text: Number.isFinite(loss) && setup ? meaning(loss, setup) : "" };
}

const ENDINGS = {
  succeeded: (run) => {
    const [from, to] = [number(run.first?.loss), number(run.last?.loss ?? run.job.result?.loss)];
    const steps = run.last?.step ?? run.job.result?.steps ?? 0;
    const values = { from: lossText(from), to: lossText(to), n: count(steps) };
    if (from === null) return t("Trained: loss {to}", values); // its events have expired
    return to < LEARNED * from
      ? tn("It learned: loss {from} → {to} in {n} step", "It learned: loss {from} → {to} in {n} steps", steps, values)
      : tn("After {n} step: loss {from} → {to}", "After {n} steps: loss {from} → {to}", steps, values);
  },
  failed: (run) => (run.end?.reason ?? run.job.reason) === "diverged"
    ? t("It diverged at step {step}", { step: count(run.last?.step ?? 0) })
    : t("The run failed"),
  canceled: (run) => t("Cancelled at step {step}", { step: count(run.last?.step ?? 0) }),
  aborted: () => t("Cancelled before it started"),
};

function meaning(loss, setup) {
  const vocabulary = setup.vocab_size;
  if (loss >= setup.uniform_loss) {
    return t("Guessing at random among {v} characters costs ln {v} = {uniform}. It is not better than that yet.", { v: vocabulary, uniform: sig(setup.uniform_loss, 3) });
  }
  return t("Guessing at random among {v} characters costs ln {v} = {uniform}. At loss {loss} it hesitates between about {n}.", {
    v: vocabulary, uniform: sig(setup.uniform_loss, 3), loss: sig(loss, 3), n: short(Math.exp(loss), 2),
  });
}

/** What tells an earlier run from its neighbours in a list: length, outcome, age. */
export function outcome(job) {
  const steps = job.result?.steps ?? job.params.steps;
  const length = Number.isFinite(steps) ? tn("{n} step", "{n} steps", steps, { n: count(steps) }) : null;
  return [length, how(job), ago(job.ended_at ?? job.created_at)].filter(Boolean).join(" · ");
}

function how(job) {
  const loss = number(job.result?.loss);
  if (job.state === "succeeded") return loss === null ? t("done") : t("loss {loss}", { loss: lossText(loss) });
  if (job.state === "failed") return job.reason === "diverged" ? t("diverged") : t("failed");
  return { queued: t("waiting"), starting: t("starting"), running: t("running"), paused: t("paused"), canceled: t("cancelled"), aborted: t("cancelled") }[job.state] ?? job.state;
}
