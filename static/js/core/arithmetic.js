/**
 * The arithmetic behind a cell, spelled out with its real operands. Pure: numbers in, numbers out.
 *
 * Operands are the float32 numbers of the trace; sums run in float64, so a result can differ from
 * the traced float32 value in the last digits. Nothing here rounds; only the spelling does.
 */

import { short } from "core/format";

/** Σ aᵢ·bᵢ (+ bias): `terms` keeps each product. */
export function dot(a, b, bias = null) {
  const terms = [];
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) {
    const product = a[i] * b[i];
    // 0 · −∞ cannot occur in a forward pass; 0 weight on a masked key stays 0.
    terms.push({ index: i, a: a[i], b: b[i], product });
    sum += product;
  }
  return { terms, bias, sum, value: bias === null ? sum : sum + bias };
}

/** Softmax of one row at `index`; subtracting the maximum first keeps exp() in range. */
export function softmax(row, index) {
  let max = -Infinity;
  for (const value of row) if (value > max) max = value;
  const empty = max === -Infinity; // every key masked: the weights are 0 by definition
  const exps = Array.from(row, (value) => (empty ? 0 : Math.exp(value - max)));
  const sum = exps.reduce((total, value) => total + value, 0);
  return { max, exps, sum, exp: exps[index], value: empty ? 0 : exps[index] / sum };
}

/** Layer normalisation of one row at `index`, biased variance as in torch. */
export function layerNorm(row, index, gamma, beta, eps = 1e-5) {
  const n = row.length;
  let mean = 0;
  for (const value of row) mean += value / n;
  let variance = 0;
  for (const value of row) variance += (value - mean) ** 2 / n;
  const deviation = Math.sqrt(variance + eps);
  const normal = (row[index] - mean) / deviation;
  return { mean, variance, eps, deviation, x: row[index], normal, gamma, beta, value: normal * gamma + beta };
}

/** erf by its Maclaurin series near 0 and by erfc's continued fraction further out (DLMF 7.6, 7.9). */
export function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = size;
    let sum = size;
    for (let n = 1; n < 80; n += 1) {
      term *= -(size * size) / n;
      sum += term / (2 * n + 1);
      if (Math.abs(term) < 1e-18) break;
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = size;
  for (let k = 60; k >= 1; k -= 1) fraction = size + k / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / fraction);
}

/** Exact GELU: x · Φ(x) (Hendrycks and Gimpel 2016). */
export function gelu(x) {
  const phi = 0.5 * (1 + erf(x / Math.SQRT2));
  return { x, phi, value: x * phi };
}

/** Entropy in nats of a distribution and the number of entries above zero. */
export function entropy(weights) {
  let total = 0;
  let count = 0;
  for (const weight of weights) {
    if (!(weight > 0)) continue;
    total -= weight * Math.log(weight);
    count += 1;
  }
  return { value: total, count, limit: Math.log(Math.max(count, 1)) };
}

/**
 * Next-token distribution: ÷ temperature, then top-k (Fan et al. 2018; 0 keeps all) and the nucleus
 * top-p over the whole vocabulary (Holtzman et al. 2020; 1 keeps all). A token must pass both; among
 * equals the lower id comes first; temperature 0 keeps exactly the likeliest.
 */
export function distribution(logits, { temperature = 1, topK = 0, topP = 1 } = {}) {
  const n = logits.length;
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => logits[j] - logits[i] || i - j);
  const greedy = !(temperature > 0);
  const scaled = Float64Array.from(logits, (value) => (greedy ? value : value / temperature));
  const exps = Array.from(logits, (value) => Math.exp((value - logits[order[0]]) / (greedy ? 1 : temperature)));
  const total = exps.reduce((sum, value) => sum + value, 0);
  const kept = new Set();
  let before = 0; // the mass of the likelier ones
  for (const [rank, id] of order.entries()) {
    const cut = (greedy && rank > 0) || (topK > 0 && rank >= topK) || (topP < 1 && before >= topP - 1e-12);
    if (rank > 0 && cut) break;
    kept.add(id);
    before += exps[id] / total;
  }
  let mass = 0;
  for (const id of kept) mass += exps[id] / total;
  const probs = Float64Array.from(exps, (value, id) => (kept.has(id) ? value / total / mass : 0));
  return { scaled, probs, order, kept };
}

/** The id that a draw `u` in [0, 1) picks: the first whose cumulative probability exceeds u. */
export function pick(probs, u) {
  let mass = 0;
  let last = 0;
  for (let id = 0; id < probs.length; id += 1) {
    if (probs[id] > 0) last = id;
    mass += probs[id];
    if (mass > u && probs[id] > 0) return id;
  }
  return last;
}

/** A number as an operand: negative ones in brackets, so that `a · −b` reads well. */
function operand(value) {
  return value < 0 ? `(${short(value, 3)})` : short(value, 3);
}

/** "0.36·(−0.57) + (−0.72)·0.95 + … + 1.97·0.11" with at most `limit` products. */
export function spellProducts(terms, limit = 6) {
  const text = ({ a, b }) => `${operand(a)}·${operand(b)}`;
  if (terms.length <= limit) return terms.map(text).join(" + ");
  const head = terms.slice(0, limit - 1).map(text);
  return [...head, "…", text(terms.at(-1))].join(" + ");
}

/** "0.14 + 1 + 0.03 + … + 0.2" with at most `limit` numbers. */
export function spellSum(values, limit = 6) {
  const list = Array.from(values);
  if (list.length <= limit) return list.map(operand).join(" + ");
  return [...list.slice(0, limit - 1).map(operand), "…", operand(list.at(-1))].join(" + ");
}
