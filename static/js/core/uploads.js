/** Own files: sending one with its progress, and what this page knows of those sent before. */
import { lang, t } from "core/i18n";
import { Problem, request } from "core/jobs";

const API = "/api/v1/uploads";
/** Bytes that a file of each form may have; the server says the same. */
export const LIMITS = { text: 20e6, vectors: 2e9 };

const known = new Map();
const keep = (upload) => known.set(upload.id, upload).get(upload.id);

/** An upload that this page has heard of, deleted ones too; null for any other id. */
export const knownUpload = (id) => known.get(id) ?? null;

/** Uploads of a form, newest first. Throws Problem. */
export async function listUploads(form, limit = 50) {
  const { items } = await request(`/uploads?${new URLSearchParams({ form, limit })}`);
  return items.map(keep);
}

/** Deletes one. Throws Problem, also while a job needs it. */
export const removeUpload = (id) => request(`/uploads/${encodeURIComponent(id)}`, { method: "DELETE" });

/**
 * Sends a file or a Blob. `onProgress(share)` from 0 to 1: at 1 all has gone out and the server
 * checks it. `signal` ends it. Throws Problem; code "canceled" when the signal did.
 */
export function sendUpload(blob, name, { onProgress = () => {}, signal = null } = {}) {
  // fetch tells nothing of what has gone out yet; XMLHttpRequest does.
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    const fail = (about) => reject(new Problem(about));
    call.open("POST", API);
    call.responseType = "json";
    call.setRequestHeader("Accept", "application/json");
    call.setRequestHeader("Accept-Language", lang);
    call.setRequestHeader("X-Playground", "1");
    call.upload.onprogress = (event) => onProgress(event.total ? event.loaded / event.total : 0);
    call.upload.onload = () => onProgress(1);
    call.onload = () => {
      const { status, response } = call;
      if (status === 201 && response) resolve(keep(response));
      else fail({ detail: t("The server answered with status {status}.", { status }), ...response, status });
    };
    call.onerror = () => fail({ detail: t("The upload broke off. Check that the file can still be read and the server runs, then try again.") });
    call.onabort = () => fail({ code: "canceled", detail: t("You ended the upload.") });
    signal?.addEventListener("abort", () => call.abort());
    const form = new FormData();
    form.append("file", blob, name);
    call.send(form);
  });
}
