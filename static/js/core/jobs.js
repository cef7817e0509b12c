/** Jobs from the page's side: submit, control, follow (see `core/socket`). */
import { lang, t } from "core/i18n";
import { follow } from "core/socket";
import { Problem } from "core/problem";

export { follow, Problem };

const API = "/api/v1";
const QUIET_MS = 1500;

/** A request to the API: its JSON, null for 204. Throws Problem. */
export async function request(path, { method = "GET", body, headers = {} } = {}) {
  let response;
  try {
    response = await fetch(`${API}${path}`, {
      method,
      headers: {
        Accept: "application/json",
        "Accept-Language": lang,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem({ detail: t("The server does not answer. Check that it still runs.") });
  }
  if (response.status === 204) return null;
  const data = await response.json().catch(() => null);
  if (!response.ok) {
    const status = response.status;
    const detail = t("The server answered with status {status}.", { status });
    throw new Problem({ detail, ...data, status });
  }
  return data;
}

const path = (id) => `/jobs/${encodeURIComponent(id)}`;
const kinds = new Map();

/** The schema of a kind, fetched once a page. */
export function kind(name) {
  if (!kinds.has(name)) {
    const asked = request(`/kinds/${encodeURIComponent(name)}`);
    asked.catch(() => kinds.delete(name));
    kinds.set(name, asked);
  }
  return kinds.get(name);
}

/**
 * Submits a job. `wait` (seconds) asks the server to answer once the job has ended, for short
 * kinds. A key makes a repeated request after a lost answer harmless. Throws Problem.
 */
export function submit(kindName, params, { wait = 0 } = {}) {
  const headers = { "Idempotency-Key": key() };
  if (wait) headers.Prefer = `wait=${wait}`;
  return request("/jobs", { method: "POST", body: { kind: kindName, params }, headers });
}

/** `cancel`, `pause`, `resume`, `step`, or `set` with new values. Throws Problem. */
export function control(id, action, values = null) {
  const body = values ? { action, values } : { action };
  return request(`${path(id)}/control`, { method: "POST", body });
}

export const getJob = (id) => request(path(id));

/** Jobs, newest first: `{kind, state, limit}` → `{items, next, prev}`. */
export function listJobs(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  return request(`/jobs?${new URLSearchParams(given)}`);
}

/** Deletes an ended job and its artifacts. */
export const remove = (id) => request(path(id), { method: "DELETE" });

/** The address of an artifact; folders in its name stay folders. */
export function artifactUrl(id, name) {
  return `${API}${path(id)}/artifacts/${name.split("/").map(encodeURIComponent).join("/")}`;
}

const ENDED = new Set(["succeeded", "failed", "canceled", "aborted"]);

/** True for a job that will not change any more. */
export const ended = (job) => ENDED.has(job?.state);

/**
 * Waits for a job's end and returns the last job; every event has been handed out by then.
 * Throws Problem when the job may not be followed.
 */
export function finished(id, { onEvent = () => {}, onJob = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    let job = null;
    let seenEnd = false;
    let timer = 0;
    const settle = () => {
      clearTimeout(timer);
      following.close();
      resolve(job);
    };
    const look = () => {
      clearTimeout(timer);
      if (!ended(job)) return;
      // A job cancelled before its start has no events; an expired log has no end to wait for.
      if (seenEnd || job.state === "aborted") settle();
      else timer = setTimeout(settle, QUIET_MS);
    };
    const following = follow(id, {
      onEvent(event) {
        onEvent(event);
        seenEnd ||= event.type === "end";
        look();
      },
      onJob(row) {
        job = row;
        onJob(row);
        look();
      },
      onError(problem) {
        following.close();
        reject(problem);
      },
    });
  });
}

// Not `crypto.randomUUID`: it is missing on plain http addresses other than localhost.
function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
