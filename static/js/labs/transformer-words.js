/** The train view's headline and sentence: what is true of the run right now. */

import { count, number, short, sig } from "core/format";
import { pick, t } from "core/i18n";

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
    ? t("Paused at step {step}: loss {loss}", { step: count(run.last.step), loss: sig(loss, 3) })
    : t("Step {step}: loss {loss}", { step: count(run.last.step), loss: sig(loss, 3) }));
  return { title, text: Number.isFinite(loss) && setup ? meaning(loss, setup) : "" };
}

const ENDINGS = {
  succeeded: (run) => {
    const [from, to] = [number(run.setup?.uniform_loss), number(run.last?.loss ?? run.job.result?.loss)];
    return from ? t("It learned: loss {from} → {to} in {steps} steps", { from: sig(from, 3), to: sig(to, 3), steps: count(run.last?.step ?? run.job.result?.steps) }) : t("It learned");
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

/** One line about an earlier run in a list. */
export function outcome(job) {
  const loss = number(job.result?.loss);
  if (job.state === "succeeded") return loss === null ? t("done") : t("loss {loss}", { loss: sig(loss, 3) });
  if (job.state === "failed") return job.reason === "diverged" ? t("diverged") : t("failed");
  return { queued: t("waiting"), starting: t("starting"), running: t("running"), paused: t("paused"), canceled: t("cancelled"), aborted: t("cancelled") }[job.state] ?? job.state;
}
