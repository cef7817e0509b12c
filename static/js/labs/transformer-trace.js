/**
 * One traced forward pass: its steps, and its numbers fetched only when they are drawn.
 *
 * A cell is named `{tensor, head, row, col}`; `head` is null for tensors without a head axis.
 * Tensors have the axes (head, row, column), (row, column), (row) or, for the sampling step,
 * (vocabulary), which is read as one row.
 */

import { glyphs } from "core/format";
import { artifactUrl } from "core/jobs";
import { open } from "core/safetensors";

const SMALL = 65_536; // numbers, 256 KB

export class TraceData {
  /** Reads the finished `transformer.trace` job `id`. */
  static async load(id) {
    const [steps, tensors] = await Promise.all([
      fetch(artifactUrl(id, "steps.json")).then((response) => {
        if (!response.ok) throw new Error(`steps.json: ${response.status}`);
        return response.json();
      }),
      open(artifactUrl(id, "tensors.safetensors")),
    ]);
    return new TraceData(id, steps, tensors);
  }

  constructor(id, { meta, steps, tensors }, file) {
    this.id = id;
    this.meta = meta;
    this.steps = steps;
    this.axes = tensors;
    this.file = file;
    this.tokens = meta.tokens;
    this.labels = meta.tokens.map(glyphs);
    this.vocabulary = meta.vocab.map(glyphs);
    this.config = meta.config;
    this.dk = this.config.d_model / this.config.heads;
    this.producers = new Map();
    for (const step of steps) {
      for (const name of step.outputs) if (!this.producers.has(name)) this.producers.set(name, step);
    }
  }

  /** The weights it was made with, opened on first use: the model may have learned on since. */
  weights() {
    this.weightFile ??= open(artifactUrl(this.meta.model, this.meta.weights));
    return this.weightFile;
  }

  /** The training step of those weights; null for the finished model's. */
  get checkpoint() {
    const found = /step-(\d+)/.exec(this.meta.weights);
    return found ? Number(found[1]) : null;
  }

  has(name) {
    return this.file.has(name);
  }

  /** The step that made a tensor, or undefined. */
  producer(name) {
    return this.producers.get(name);
  }

  layerOf(name) {
    const found = /^blocks\.(\d+)\./.exec(name);
    return found ? Number(found[1]) : null;
  }

  hasHeads(name) {
    return this.file.shape(name).length === 3;
  }

  /** Steps a viewer of one layer walks through, in order. */
  stepsOf(layer) {
    return this.steps.filter((step) => {
      const of = this.layerOf(step.name);
      return of === null || of === layer;
    });
  }

  /** `{rows, cols, values}` of a tensor, or of one head of it. */
  async matrix(name, head = null) {
    const shape = this.file.shape(name);
    if (shape.length === 3) {
      const { data } = await this.file.part(name, head ?? 0);
      return { rows: shape[1], cols: shape[2], values: data };
    }
    const values = await this.file.slice(name);
    if (shape.length === 2) return { rows: shape[0], cols: shape[1], values };
    return this.isWide(name)
      ? { rows: 1, cols: shape[0], values }
      : { rows: shape[0], cols: 1, values };
  }

  /** One axis only: over the vocabulary (a row) or over the tokens (a column)? */
  isWide(name) {
    return name.startsWith("sample.");
  }

  /** One row of numbers. */
  async row(name, head, row) {
    const shape = this.file.shape(name);
    if (shape.length === 1) return this.isWide(name) ? this.file.slice(name) : this.file.slice(name, row, row + 1);
    const cols = shape.at(-1);
    const from = ((shape.length === 3 ? head * shape[1] : 0) + row) * cols;
    return this.file.slice(name, from, from + cols);
  }

  /** One column of numbers (reads the matrix, which is in the cache when it is on screen). */
  async column(name, head, col) {
    const { rows, cols, values } = await this.matrix(name, head);
    return Float32Array.from({ length: rows }, (_, row) => values[row * cols + col]);
  }

  async value({ tensor, head, row, col }) {
    const numbers = await this.row(tensor, head, row);
    return numbers[this.file.shape(tensor).length === 1 && !this.isWide(tensor) ? 0 : col];
  }

  /** The cell's index in the tensor's own axes, as `transformer.check` takes it. */
  index({ tensor, head, row, col }) {
    const axes = this.file.shape(tensor).length;
    if (axes === 3) return [head, row, col];
    if (axes === 2) return [row, col];
    return [this.isWide(tensor) ? col : row];
  }

  /**
   * Row `row` of a weight matrix `(out, in)`: the numbers that make output feature `row`. A small
   * matrix is fetched once as a whole, so that moving over its cells asks the server nothing.
   */
  async weightRow(name, row) {
    const file = await this.weights();
    const [rows, cols] = file.shape(name);
    if (rows * cols > SMALL) return file.slice(name, row * cols, (row + 1) * cols);
    return (await file.slice(name)).subarray(row * cols, (row + 1) * cols);
  }

  /** One entry of a bias or gain. */
  async weightAt(name, index) {
    const file = await this.weights();
    return (await file.slice(name))[index];
  }
}
