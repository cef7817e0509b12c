/**
 * Why a cell holds its number: follows the step that made it, fetches the operands (only the rows
 * needed), and does the arithmetic again.
 *
 * `explain(trace, cell)` resolves to
 *   { value, shown, step, lines: [text], note?,
 *     terms?: {left, right, items: [{index, a, b, product, label?, from?, fromB?}]},
 *     sources: [{text, role?, cell?}] }
 * `value` is what the page computes, `shown` the trace's own number; `cell`, `from` and `fromB` are
 * where an operand stands on the page, absent for learned weights.
 */

import { dot, erf, gelu, layerNorm, softmax, spellProducts, spellSum } from "core/arithmetic";
import { short } from "core/format";
import { t } from "core/i18n";

export async function explain(trace, cell) {
  const step = trace.producer(cell.tensor);
  const found = step && (await RULES[step.op]?.(trace, cell, step));
  return { lines: [], sources: [], ...found, step, shown: await trace.value(cell) };
}

const at = (tensor, cell, change = {}) => ({ tensor, head: cell.head, row: cell.row, col: cell.col, ...change });

const RULES = { embed, position, add, norm, project, matmul, scale, mask, softmax: soften, weighted, concat, gelu: activate, temperature: sample, filter: sample, sample };

/** A token's row of the embedding table. */
async function embed(trace, cell) {
  const id = trace.meta.ids[cell.row];
  const row = await trace.weightRow("embed.token.weight", id);
  return {
    value: row[cell.col],
    lines: [`embed.token.weight[${id}, ${cell.col}]`, `= ${short(row[cell.col])}`],
    sources: [{ text: t("row {id} of the token table: the id of this token", { id }) }],
  };
}

async function position(trace, cell, step) {
  if (trace.config.positions === "learned") {
    const row = await trace.weightRow("embed.position.weight", cell.row);
    return {
      value: row[cell.col],
      lines: [`embed.position.weight[${cell.row}, ${cell.col}]`, `= ${short(row[cell.col])}`],
      sources: [{ text: t("row {row} of the position table, learned in training", { row: cell.row }) }],
    };
  }
  const even = cell.col - (cell.col % 2);
  const angle = cell.row / 10_000 ** (even / trace.config.d_model);
  const wave = cell.col % 2 ? "cos" : "sin";
  const value = Math[wave](angle);
  return {
    value,
    lines: [`${wave}(${cell.row} / 10000^(${even}/${trace.config.d_model}))`, `= ${wave}(${short(angle)})`, `= ${short(value)}`],
    sources: [{ text: t("fixed waves, not learned") }],
  };
}

async function add(trace, cell, step) {
  const [left, right] = step.inputs.map((tensor) => at(tensor, cell));
  const [a, b] = await Promise.all([trace.value(left), trace.value(right)]);
  return {
    value: a + b,
    lines: [spellSum([a, b]), `= ${short(a + b)}`],
    sources: [{ text: named(left, a), cell: left }, { text: named(right, b), cell: right }],
  };
}

async function norm(trace, cell, step) {
  const { x, mean, var: variance, weight, bias, eps } = step.attrs;
  const row = await trace.row(x, null, cell.row);
  const [gamma, beta] = await Promise.all([trace.weightAt(weight, cell.col), trace.weightAt(bias, cell.col)]);
  const found = layerNorm(row, Math.min(cell.col, row.length - 1), gamma, beta, eps);
  const source = { text: t("the row of {tensor}, {n} numbers", { tensor: x, n: row.length }), cell: at(x, cell) };
  if (cell.tensor === mean) {
    return { value: found.mean, lines: [`(${spellSum(row)}) / ${row.length}`, `= ${short(found.mean)}`], sources: [{ ...source, cell: at(x, cell, { col: 0 }) }] };
  }
  if (cell.tensor === variance) {
    const squares = Array.from(row, (value) => (value - found.mean) ** 2);
    return { value: found.variance, lines: [`Σ (x − ${short(found.mean, 3)})² / ${row.length}`, `= (${spellSum(squares)}) / ${row.length}`, `= ${short(found.variance)}`], sources: [{ ...source, cell: at(x, cell, { col: 0 }) }] };
  }
  return {
    value: found.value,
    lines: [
      `x = ${short(found.x)}   μ = ${short(found.mean)}   σ² = ${short(found.variance)}`,
      `γ = ${short(gamma)}   β = ${short(beta)}   ε = ${eps}`,
      `(x − μ) / √(σ² + ε) · γ + β`,
      `= (${short(found.x)} − ${bracket(found.mean)}) / ${short(found.deviation)} · ${bracket(gamma)} + ${bracket(beta)}`,
      `= ${short(found.normal)} · ${bracket(gamma)} + ${bracket(beta)}`,
      `= ${short(found.value)}`,
    ],
    sources: [
      source,
      { text: `μ = ${short(found.mean)}`, cell: at(mean, cell, { col: 0 }) },
      { text: `σ² = ${short(found.variance)}`, cell: at(variance, cell, { col: 0 }) },
      { text: t("γ and β: learned, entry {col} of {name}", { col: cell.col, name: weight }) },
    ],
  };
}

/** x · Wᵀ + b. For queries, keys and values the weight's row belongs to the chosen head. */
async function project(trace, cell, step) {
  const own = step.attrs.projections?.find((one) => one.out === cell.tensor) ?? step.attrs;
  const { x, weight, bias } = { x: step.attrs.x, ...own };
  const out = trace.hasHeads(cell.tensor) ? cell.head * trace.dk + cell.col : cell.col;
  const [row, weights, offset] = await Promise.all([
    trace.row(x, null, cell.row), trace.weightRow(weight, out), trace.weightAt(bias, out),
  ]);
  const found = dot(row, weights, offset);
  return {
    value: found.value,
    lines: [`x · w + b = ${spellProducts(found.terms)} + ${bracket(offset)}`, `= ${short(found.sum)} + ${bracket(offset)}`, `= ${short(found.value)}`],
    terms: { left: "x", right: "w", items: found.terms.map((term) => ({ ...term, from: at(x, cell, { head: null, col: term.index }) })) },
    sources: [
      { text: t("x: row {row} of {tensor}", { row: cell.row, tensor: x }), cell: at(x, cell, { head: null, col: strongest(found.terms) }) },
      { text: t("w: row {out} of {name}, learned", { out, name: weight }) },
      { text: t("b: entry {out} of {name} = {value}", { out, name: bias, value: short(offset) }) },
    ],
  };
}

async function matmul(trace, cell, step) {
  const { q, k } = step.attrs;
  const [query, key] = await Promise.all([trace.row(q, cell.head, cell.row), trace.row(k, cell.head, cell.col)]);
  const found = dot(query, key);
  const best = strongest(found.terms);
  return {
    value: found.value,
    lines: [`q · k = ${spellProducts(found.terms)}`, `= ${short(found.value)}`],
    terms: {
      left: "q", right: "k",
      items: found.terms.map((term) => ({
        ...term, from: at(q, cell, { col: term.index }), fromB: at(k, cell, { row: cell.col, col: term.index }),
      })),
    },
    sources: [
      { text: t("q: the query of {token}", { token: trace.labels[cell.row] }), role: "query", cell: at(q, cell, { col: best }) },
      { text: t("k: the key of {token}", { token: trace.labels[cell.col] }), role: "key", cell: at(k, cell, { row: cell.col, col: best }) },
    ],
  };
}

async function scale(trace, cell, step) {
  const { x, divisor } = step.attrs;
  const value = await trace.value(at(x, cell));
  return {
    value: value / divisor,
    lines: [`score / √d_k = ${short(value)} / √${trace.dk}`, `= ${short(value)} / ${short(divisor)}`, `= ${short(value / divisor)}`],
    sources: [{ text: named(at(x, cell), value), cell: at(x, cell) }],
  };
}

async function mask(trace, cell, step) {
  const { x } = step.attrs;
  const value = await trace.value(at(x, cell));
  const hidden = cell.col > cell.row;
  return {
    value: hidden ? -Infinity : value,
    lines: hidden
      ? [t("key {col} > query {row}: the future", { col: cell.col, row: cell.row }), `${short(value)} → −∞`]
      : [t("key {col} ≤ query {row}: visible", { col: cell.col, row: cell.row }), `${short(value)} → ${short(value)}`],
    sources: [{ text: named(at(x, cell), value), cell: at(x, cell) }],
  };
}

/** Softmax over a row of the masked scores, or of the logits. */
async function soften(trace, cell, step) {
  const x = step.attrs.x;
  const row = await trace.row(x, cell.head, cell.row);
  const found = softmax(row, cell.col);
  const exps = found.exps.filter((value) => value > 0);
  return {
    value: found.value,
    lines: [
      softmaxLine(row[cell.col], found.max),
      `= ${short(found.exp)} / (${spellSum(exps)})`,
      `= ${short(found.exp)} / ${short(found.sum)}`,
      `= ${short(found.value)}`,
    ],
    note: t("The row's largest score, {max}, is taken off first: it changes nothing and keeps exp small.", { max: short(found.max) }),
    sources: [{ text: named(at(x, cell), row[cell.col]), cell: at(x, cell) }],
  };
}

async function weighted(trace, cell, step) {
  const { weights, v } = step.attrs;
  const [share, values] = await Promise.all([trace.row(weights, cell.head, cell.row), trace.column(v, cell.head, cell.col)]);
  const all = dot(share, values);
  // Masked keys weigh 0: they add nothing, so the sum is spelled over the visible ones.
  const visible = all.terms.filter((term) => term.a !== 0);
  return {
    value: all.value,
    lines: [`Σ a · v = ${spellProducts(visible)}`, `= ${short(all.value)}`],
    terms: {
      left: "a", right: "v",
      items: visible.map((term) => ({
        ...term, label: trace.labels[term.index],
        from: at(weights, cell, { col: term.index }), fromB: at(v, cell, { row: term.index }),
      })),
    },
    sources: [
      { text: t("a: how {token} spreads its attention", { token: trace.labels[cell.row] }), role: "attention", cell: at(weights, cell, { col: strongest(visible) }) },
      { text: t("v: feature {col} of every value", { col: cell.col }), role: "value", cell: at(v, cell, { row: strongest(visible) }) },
    ],
  };
}

async function concat(trace, cell, step) {
  const tensor = step.attrs.x;
  const from = { tensor, head: Math.floor(cell.col / trace.dk), row: cell.row, col: cell.col % trace.dk };
  const value = await trace.value(from);
  return {
    value,
    lines: [t("column {col} = head {head}, feature {feature}", { col: cell.col, head: from.head + 1, feature: from.col }), `= ${short(value)}`],
    sources: [{ text: named(from, value), cell: from }],
  };
}

async function activate(trace, cell, step) {
  const x = step.attrs.x;
  const found = gelu(await trace.value(at(x, cell)));
  return {
    value: found.value,
    lines: [
      `GELU(x) = x · Φ(x)`,
      `Φ(${short(found.x)}) = ½ (1 + erf(${short(found.x)} / √2)) = ½ (1 + ${bracket(erf(found.x / Math.SQRT2))}) = ${short(found.phi)}`,
      `= ${short(found.x)} · ${short(found.phi)}`,
      `= ${short(found.value)}`,
    ],
    sources: [{ text: named(at(x, cell), found.x), cell: at(x, cell) }],
  };
}

// ---------------------------------------------------------------- sampling: rows over the vocabulary

async function temperature(trace, cell, step) {
  const last = trace.tokens.length - 1;
  const from = { tensor: "logits", head: null, row: last, col: cell.col };
  const value = await trace.value(from);
  const heat = step.attrs.temperature;
  return {
    value: heat > 0 ? value / heat : value,
    lines: heat > 0
      ? [t("logit / temperature = {value} / {heat}", { value: short(value), heat: short(heat) }), `= ${short(value / heat)}`]
      : [t("temperature 0: the best logit wins, nothing is divided")],
    sources: [{ text: named(from, value), cell: from }],
  };
}

async function sample(trace, cell, step) {
  const value = await trace.value(cell);
  const scaledCell = at("sample.scaled", cell);
  if (cell.tensor === "sample.logits") {
    const from = { tensor: "logits", head: null, row: trace.tokens.length - 1, col: cell.col };
    return { value, lines: [t("the logits of the last position")], sources: [{ text: named(from, value), cell: from }] };
  }
  if (cell.tensor === "sample.scaled") return temperature(trace, cell, step);
  const [scaled, kept] = await Promise.all([trace.row("sample.scaled", null, 0), trace.row("sample.kept", null, 0)]);
  const source = { text: named(scaledCell, scaled[cell.col]), cell: scaledCell };
  if (cell.tensor === "sample.kept") return { value, lines: keptLines(step, value), sources: [source] };
  const found = softmax(scaled.map((number, i) => (kept[i] ? number : -Infinity)), cell.col);
  return {
    value: found.value,
    lines: kept[cell.col]
      ? [`exp(${short(scaled[cell.col])} − ${bracket(found.max)}) / Σ`, `= ${short(found.exp)} / ${short(found.sum)}`, `= ${short(found.value)}`]
      : [t("cut by top-k or top-p: probability 0")],
    sources: [source, { text: t("kept: {n} of {vocab} tokens", { n: kept.filter(Boolean).length, vocab: kept.length }), cell: at("sample.kept", cell) }],
  };
}

function keptLines(step, value) {
  const { top_k: k, top_p: p, kept } = step.attrs;
  const rule = [k ? t("top-k: the {k} likeliest", { k }) : t("top-k: all"), p < 1 ? t("top-p: the fewest worth {p}", { p }) : t("top-p: all")];
  return [...rule, value ? t("kept, one of {n}", { n: kept }) : t("cut; {n} stay", { n: kept })];
}

// ---------------------------------------------------------------- words

function bracket(value) {
  return value < 0 ? `(${short(value)})` : short(value);
}

const softmaxLine = (x, max) => t("exp({x} − {max}) / Σ exp(row − {max})", { x: short(x), max: bracket(max) });

function named(cell, value) {
  const head = cell.head === null ? "" : t("head {n}", { n: cell.head + 1 });
  return [cell.tensor, head].filter(Boolean).join(" · ") + ` = ${short(value)}`;
}

/** Index of the product that matters most. */
function strongest(terms) {
  let best = terms[0];
  for (const term of terms) if (Math.abs(term.product) > Math.abs(best.product)) best = term;
  return best?.index ?? 0;
}
