/**
 * What the page knows about one training run: a reducer over its events. Every number comes from
 * the event log, so a reload in the middle rebuilds all of it.
 */

import { number } from "core/format";
import { messageOf, t } from "core/i18n";
import { artifactUrl, ended, follow, getJob, Problem } from "core/jobs";
import { open } from "core/safetensors";

export const KIND = "transformer.train";

/** The job of an id out of the address. Throws Problem when there is none, or it trains nothing. */
export async function trainingRun(id) {
  const job = await getJob(id);
  if (job.kind !== KIND) throw new Problem({ detail: t("The address names a job of another kind, not a training run.") });
  return job;
}

export class Run {
  /** `onEvent(event)` gets each event once, `onChange()` is called at most once a frame. */
  constructor(job, { onEvent, onChange, onStatus, onError }) {
    this.id = job.id;
    this.job = job;
    this.setup = null;
    this.first = null; // the first metric: what the untrained model costs
    this.last = null; // the newest metric
    this.valLoss = null;
    this.snapshots = [];
    this.samples = [];
    this.end = null;
    this.maps = new Map();
    this.onEvent = onEvent;
    this.onChange = onChange;
    this.following = follow(job.id, {
      onEvent: (event) => this.#take(event),
      onJob: (row) => {
        this.job = row;
        this.#soon();
      },
      onStatus,
      onError,
    });
  }

  close() {
    this.following.close();
    this.closed = true;
  }

  get state() {
    return this.end?.state ?? this.live ?? this.job.state;
  }

  get ended() {
    return ended(this);
  }

  get message() {
    return messageOf(this.end) || messageOf(this.job);
  }

  #take(event) {
    const { type, data } = event;
    if (type === "metric") {
      this.first ??= data;
      this.last = data;
      if (data.val_loss !== undefined) this.valLoss = number(data.val_loss);
    } else if (type === "frame") this.#frame(data);
    else if (type === "state") this.live = data.state;
    else if (type === "resumed") this.#rewind(data.from_step);
    else if (type === "end") this.end = data;
    this.onEvent(event);
    this.#soon();
  }

  #frame(data) {
    if (data.name === "setup") this.setup = data;
    else if (data.name === "attention") insert(this.snapshots, data);
    else if (data.name === "sample") insert(this.samples, data);
  }

  /** A new attempt goes on from a checkpoint: what lay beyond it is superseded. */
  #rewind(step) {
    this.snapshots = this.snapshots.filter((one) => one.step <= step);
    this.samples = this.samples.filter((one) => one.step <= step);
    this.maps.clear();
  }

  #soon() {
    if (this.waiting || this.closed) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (!this.closed) this.onChange();
    });
  }

  /** Attention of a snapshot: `{layers, heads, tokens, data}`, data is (L, h, T, T) row by row. */
  attention(snapshot) {
    const name = snapshot.artifact;
    if (!this.maps.has(name)) {
      const loading = open(artifactUrl(this.id, name))
        .then((file) => file.tensor("attention"))
        .then(({ shape, data }) => ({ layers: shape[0], heads: shape[1], tokens: shape[2], data }));
      loading.catch(() => this.maps.delete(name));
      this.maps.set(name, loading);
    }
    return this.maps.get(name);
  }
}

/** One entry a step, in order; a repeated step replaces the earlier one. */
function insert(list, entry) {
  const at = list.findIndex((one) => one.step >= entry.step);
  if (at < 0) list.push(entry);
  else list.splice(at, list[at].step === entry.step ? 1 : 0, entry);
}
