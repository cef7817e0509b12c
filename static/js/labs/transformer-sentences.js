/** One plain sentence a stage, with this run's own numbers in it. Tokens stand in it as chips. */

import { chip, strong } from "core/dom";
import { glyphs, percent, sig } from "core/format";
import { parts, pick } from "core/i18n";

/**
 * `cell` is the one talked about (hovered, locked, or the most telling one), `value` its number,
 * `before` the number it was made from where one stage maps cell to cell.
 */
export function sentence(step, trace, { cell, value, before }) {
  const q = chip(trace.labels[cell.row] ?? "", "query");
  const k = chip(trace.labels[cell.col] ?? "", "key");
  const token = chip(trace.labels[cell.row] ?? "", "residual");
  const v = strong(sig(value));
  const b = strong(sig(before));
  const fill = {
    q, k, token, v, b, row: cell.row, col: cell.col, dk: trace.dk, root: sig(Math.sqrt(trace.dk)), head: cell.head + 1,
  };
  return WORDS[step.stage]?.(fill, { cell, value, before, trace, step }) ?? [pick(step.sentence)];
}

const WORDS = {
  "embed.token": (f, { trace, cell }) =>
    parts("Token {token} has the id {id}: row {id} of a table that training filled. Feature {col} of it is {v}.", { ...f, id: trace.meta.ids[cell.row] }),
  "embed.position": (f) =>
    parts("Without this, word order would be invisible. Place {row} adds {v} to feature {col}, whatever token stands there.", f),
  "embed.sum": (f, { trace }) =>
    parts("What {token} is plus where it stands: {n} numbers that the layers now work on. Feature {col} is {v}.", { ...f, n: trace.config.d_model }),
  norm1: normWords,
  norm2: normWords,
  final_norm: normWords,
  qkv: (f) =>
    parts("Head {head} reads each token three times with its own {dk} features: {q} as a query, as a key, and as a value. This number is {v}.", f),
  scores: (f) =>
    parts("How well does the key of {k} answer the query of {q}? Their {dk} numbers multiplied pair by pair and summed give {v}.", f),
  scale: (f) =>
    parts("Long vectors give large scores. Divided by √{dk} = {root}, the score of {q} for {k} goes from {b} to {v}.", f),
  mask: (f, { cell }) =>
    cell.col > cell.row
      ? parts("{k} comes after {q}, so {q2} may not look at it: its score {b} becomes {v}.", { ...f, q2: f.q.cloneNode(true) })
      : parts("{q} may look at {k}, which does not come after it: its score stays {v}.", f),
  softmax: (f, { value, cell }) =>
    cell.col > cell.row
      ? parts("{k} lies in the future of {q} and receives none of its attention.", f)
      : parts("For the query {q}, the score against every visible key is exponentiated and divided by the row's total. {k} receives {v} of its attention.", { ...f, v: strong(`${sig(value)} (${percent(value)})`) }),
  weighted: (f) =>
    parts("{q} takes from every visible token its value, as much as it attends to it. Feature {col} of the mix is {v}.", f),
  concat: (f, { trace }) =>
    parts("Each head looked at the text in its own way. Their mixes for {token} stand side by side again: {c} numbers.", { ...f, c: trace.config.d_model }),
  project: (f) =>
    parts("One more matrix blends what the heads found. To feature {col} of {token} attention adds {v}.", f),
  residual1: addWords,
  residual2: addWords,
  "ffn.up": (f, { trace }) =>
    parts("Now each token thinks by itself: {c} numbers become {n}. Feature {col} of {token} is {v}.", {
      ...f, c: trace.config.d_model, n: trace.config.d_ff,
    }),
  "ffn.act": (f, { before }) =>
    before < 0
      ? parts("GELU lets positive numbers pass and almost silences negative ones: {b} becomes {v}.", f)
      : parts("GELU lets positive numbers pass, large ones nearly unchanged: {b} becomes {v}.", f),
  "ffn.down": (f, { trace }) =>
    parts("Back to {c} numbers a token. To feature {col} of {token} the feed-forward layer adds {v}.", { ...f, c: trace.config.d_model }),
  logits: (f, { trace, cell }) =>
    parts("After {token}, every token of the vocabulary gets a score for coming next. {next} gets {v}.", {
      ...f, next: chip(trace.vocabulary[cell.col], "value"),
    }),
  probabilities: (f, { trace, cell, value }) =>
    parts("Softmax turns the {n} scores into probabilities. After {token}, the model gives {next} a chance of {v}.", {
      ...f, n: trace.vocabulary.length, next: chip(trace.vocabulary[cell.col], "value"), v: strong(`${sig(value)} (${percent(value)})`),
    }),
  sample: (f, { step, trace }) => {
    const { temperature, seed, kept } = step.attrs;
    const next = chip(glyphs(trace.meta.vocab[step.attrs.chosen] ?? ""), "value");
    if (!temperature) return parts("At temperature 0 nothing is left to chance: the likeliest token {next} is taken.", { next });
    return parts("Tokens in the draw: {n}. Seed {seed} draws {u}, and that point of the line from 0 to 1 belongs to {next}. It is sampled, not always the likeliest.", {
      n: kept, seed, u: strong(sig(step.attrs.draw)), next,
    });
  },
};

function normWords(f) {
  return parts("The numbers of {token} are shifted to mean 0 and stretched to variance 1, then scaled by a learned γ and β: feature {col} goes from {b} to {v}.", f);
}

function addWords(f) {
  return parts("What was there stays and the new part is added to it. Feature {col} of {token} becomes {v}.", f);
}
