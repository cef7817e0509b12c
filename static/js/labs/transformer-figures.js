/**
 * What each stage draws: the matrices before, the operation, the matrices after, and which parts
 * of the one belong to a cell of the other. Data only; transformer-step.js puts it on the page.
 *
 * A matrix is described by `{tensor, title, rows, cols, ramp, rowRole?, heads?, …}`, where `rows` and
 * `cols` name an axis of AXES. `links(cell)` gives marks for each matrix of `before`.
 */

import { t } from "core/i18n";

/** How an axis is called, and whose labels it carries. */
export const AXES = {
  query: { title: () => t("query (looks)"), role: "query", labels: (trace) => trace.labels },
  key: { title: () => t("key (is looked at)"), role: "key", labels: (trace) => trace.labels },
  token: { title: () => t("token"), role: "residual", labels: (trace) => trace.labels },
  value: { title: () => t("value of each token"), role: "value", labels: (trace) => trace.labels },
  feature: { title: () => t("feature"), role: "residual", labels: (trace, n) => numbers(n) },
  headFeature: { title: () => t("feature of this head"), role: "residual", labels: (trace, n) => numbers(n) },
  vocab: { title: () => t("possible next token"), role: "value", labels: (trace) => trace.vocabulary },
  single: { title: () => "", role: "residual", labels: () => [""] },
};

const numbers = (n) => Array.from({ length: n }, (_, i) => String(i));

/** Short names on the track of the player. */
export const NAMES = {
  "embed.token": () => t("Token"), "embed.position": () => t("Position"), "embed.sum": () => t("Sum"),
  norm1: () => t("Norm"), qkv: () => "Q K V", scores: () => "QKᵀ", scale: () => "÷√d_k", mask: () => t("Mask"),
  softmax: () => t("Softmax"), weighted: () => "· V", concat: () => t("Concat"), project: () => "W_O",
  residual1: () => t("Add"), norm2: () => t("Norm"), "ffn.up": () => "FFN ↑", "ffn.act": () => "GELU",
  "ffn.down": () => "FFN ↓", residual2: () => t("Add"), final_norm: () => t("Norm"),
  logits: () => t("Logits"), probabilities: () => t("Chances"), temperature: () => t("÷ T"), filter: () => "top-k/p",
  sample: () => t("Draw"),
};

/** The parts of the model that the stages belong to, as the track of the player names them. */
const GROUPS = [
  [() => t("Embedding"), ["embed.token", "embed.position", "embed.sum"]],
  [() => t("Attention"), ["norm1", "qkv", "scores", "scale", "mask", "softmax", "weighted", "concat", "project", "residual1"]],
  [() => t("Feed-forward"), ["norm2", "ffn.up", "ffn.act", "ffn.down", "residual2"]],
  [() => t("Output"), ["final_norm", "logits", "probabilities", "temperature", "filter", "sample"]],
];

export const groupOf = (stage) => GROUPS.find(([, stages]) => stages.includes(stage))?.[0]();

const wide = { square: false, maxCell: 22, ramp: "diverging" };
const flat = (tensor, title, more = {}) => ({ tensor, title, rows: "token", cols: "feature", ...wide, ...more });
const square = (tensor, title, ramp = "diverging") => ({ tensor, title, rows: "query", cols: "key", ramp, heads: true });
const slim = (tensor, title, role, rows = "token") => ({ tensor, title, rows, cols: "headFeature", rowRole: role, ...wide, heads: true });
const column = (tensor, title) => ({ tensor, title, rows: "token", cols: "single", ...wide, slim: true, quiet: true });
const vocab = (tensor, title, ramp = "diverging") => ({ tensor, title, rows: "token", cols: "vocab", ...wide, ramp });

const same = (cell) => [{ row: cell.row, col: cell.col, cell: true, role: "accent" }];
const wholeRow = (role) => (cell) => [{ row: cell.row, role }];

/**
 * The figure of a step: `{before, after, links, op, layout, spread?, draw?}`.
 * `after[0]` is the stage's main result; `op` is the caption of the arrow between.
 */
export function figure(step, trace) {
  const make = FIGURES[step.stage];
  const found = make ? make(step, trace) : plain(step);
  return { before: [], links: () => [], layout: "stack", op: "", ...found };
}

/** A stage this page has no special figure for still shows its tensors. */
function plain(step) {
  return { after: step.outputs.map((tensor) => flat(tensor, tensor)) };
}

function normFigure(step) {
  const { x, mean, var: variance } = step.attrs;
  const out = step.outputs.find((name) => name.endsWith(".out"));
  return {
    before: [flat(x, t("before")), column(mean, t("mean")), column(variance, t("variance"))],
    after: [flat(out, t("after"))],
    op: t("(x − mean) / √(variance + ε) · γ + β"),
    links: (cell) => [[...wholeRow("residual")(cell), ...same(cell)], same({ row: cell.row, col: 0 }), same({ row: cell.row, col: 0 })],
  };
}

function addFigure(step, names) {
  const [a, b] = step.inputs;
  return {
    before: [flat(a, names[0]), flat(b, names[1])],
    after: [flat(step.outputs[0], t("sum"))],
    op: t("add, number by number"),
    links: (cell) => [same(cell), same(cell)],
  };
}

function mapFigure(step, input, output, op) {
  return { before: [input], after: [output], op, links: (cell) => [same(cell)] };
}

function projectFigure(step, before, after, op) {
  return { before: [before], after: [after], op, links: (cell) => [wholeRow("residual")(cell)] };
}

const FIGURES = {
  "embed.token": (step) => ({ after: [flat(step.outputs[0], t("one row of the token table a token"))], op: t("look up") }),
  "embed.position": (step) => ({ after: [flat(step.outputs[0], t("one row of the position table a place"))], op: t("look up") }),
  "embed.sum": (step) => addFigure(step, [t("what the token is"), t("where it stands")]),
  norm1: normFigure,
  norm2: normFigure,
  final_norm: normFigure,
  qkv: (step) => {
    const x = step.attrs.x;
    const [q, k, v] = step.outputs;
    return {
      before: [flat(x, t("what goes in"))],
      after: [
        slim(q, t("queries: what it looks for"), "query", "query"),
        slim(k, t("keys: what it offers"), "key", "key"),
        slim(v, t("values: what it passes on"), "value", "value"),
      ],
      op: t("three weight matrices"),
      layout: "columns",
      links: (cell) => [wholeRow("residual")(cell)],
    };
  },
  scores: (step) => ({
    before: [slim(step.attrs.q, t("queries"), "query", "query"), slim(step.attrs.k, t("keys"), "key", "key")],
    after: [square(step.outputs[0], t("scores"))],
    op: t("each query · each key"),
    layout: "side",
    links: (cell) => [[{ row: cell.row, role: "query" }], [{ row: cell.col, role: "key" }]],
  }),
  scale: (step) => ({
    ...mapFigure(step, square(step.attrs.x, t("scores")), square(step.outputs[0], t("scores ÷ √d_k")), t("÷ √d_k")),
    layout: "side",
  }),
  mask: (step) => ({
    ...mapFigure(step, square(step.attrs.x, t("scores ÷ √d_k")), square(step.outputs[0], t("scores ÷ √d_k, masked")), t("hide the future")),
    layout: "side",
  }),
  softmax: (step) => ({
    before: [square(step.attrs.x, t("scores ÷ √d_k, masked"))],
    after: [square(step.outputs[0], t("attention weights"), "attention")],
    op: t("softmax row by row"),
    layout: "side",
    spread: true,
    links: (cell) => [[{ row: cell.row, role: "query" }, ...same(cell)]],
  }),
  weighted: (step) => ({
    before: [square(step.attrs.weights, t("attention weights"), "attention"), slim(step.attrs.v, t("values"), "value", "value")],
    after: [slim(step.outputs[0], t("mix of values"), "query", "query")],
    op: t("weights · values"),
    layout: "side",
    spread: true,
    links: (cell) => [[{ row: cell.row, role: "query" }], [{ col: cell.col, role: "value" }]],
  }),
  concat: (step, trace) => ({
    before: Array.from({ length: trace.config.heads }, (_, head) => ({
      ...slim(step.attrs.x, t("head {n}", { n: head + 1 }), "query", "query"), head, quiet: true, cols: "headFeature",
    })),
    after: [{ ...flat(step.outputs[0], t("all heads side by side")), groups: numbers(trace.config.heads).map((n) => n * trace.dk).slice(1) }],
    op: t("side by side"),
    layout: "heads",
    links: (cell) => {
      const head = Math.floor(cell.col / trace.dk);
      return Array.from({ length: trace.config.heads }, (_, i) => (i === head ? same({ row: cell.row, col: cell.col % trace.dk }) : []));
    },
  }),
  project: (step) => projectFigure(step, flat(step.attrs.x, t("all heads side by side")), flat(step.outputs[0], t("what attention adds")), t("· W_O")),
  residual1: (step) => addFigure(step, [t("what came in"), t("what attention adds")]),
  residual2: (step) => addFigure(step, [t("what came in"), t("what the feed-forward layer adds")]),
  "ffn.up": (step) => projectFigure(step, flat(step.attrs.x, t("what goes in")), flat(step.outputs[0], t("wider")), t("· W₁ + b₁")),
  "ffn.act": (step) => mapFigure(step, flat(step.attrs.x, t("before")), flat(step.outputs[0], t("after")), "GELU"),
  "ffn.down": (step) => projectFigure(step, flat(step.attrs.x, t("wider")), flat(step.outputs[0], t("back to d_model")), t("· W₂ + b₂")),
  logits: (step) => projectFigure(step, flat(step.attrs.x, t("what the last layer knows")), vocab(step.outputs[0], t("one score a possible next token")), t("· unembedding")),
  probabilities: (step) => ({
    before: [vocab(step.attrs.x, t("scores"))],
    after: [vocab(step.outputs[0], t("probabilities of the next token"), "sequential")],
    op: t("softmax row by row"),
    links: (cell) => [[{ row: cell.row, role: "residual" }, ...same(cell)]],
  }),
  temperature: (step) => ({
    before: [vocabRow("sample.logits", t("logits of the last token"))],
    after: [vocabRow("sample.scaled", t("logits ÷ temperature"))],
    op: t("÷ temperature"),
    links: (cell) => [same(cell)],
  }),
  filter: (step) => ({
    before: [vocabRow("sample.scaled", t("logits ÷ temperature"))],
    after: [vocabRow("sample.probs", t("probabilities of what is left"), "sequential"), vocabRow("sample.kept", t("kept by top-k and top-p: 1, cut: 0"), "sequential")],
    op: t("cut, then softmax"),
    links: (cell) => [same(cell)],
  }),
  sample: (step) => ({
    after: [vocabRow("sample.probs", t("probabilities to draw from"), "sequential")],
    op: "",
    draw: true,
  }),
};

function vocabRow(tensor, title, ramp = "diverging") {
  return { tensor, title, rows: "single", cols: "vocab", ...wide, ramp, maxCell: 26 };
}
