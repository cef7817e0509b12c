/**
 * <upload-field form="text">: one's own file as the value of a param. Choose it, drop it, paste a
 * text, or take one that was uploaded before.
 *
 * Attributes
 *   form   "text" or "vectors": what it takes. Give it an aria-label, too
 * Properties
 *   value  the id of the chosen upload, or null
 * Methods
 *   open() loads the list of earlier uploads, and chooses the newest if there is no value yet
 * Events
 *   upload-change  {upload}  another one is chosen, or none (null)
 */
import { clear, emit, h, uid } from "core/dom";
import { bytes, count, percent } from "core/format";
import { t, tn } from "core/i18n";
import { icon } from "core/icons";
import { knownUpload, LIMITS, listUploads, removeUpload, sendUpload } from "core/uploads";

const SHOWN = 6; // earlier uploads, before "show all"
const PREVIEW = 220; // characters

export class UploadField extends HTMLElement {
  #value = null;
  #items = null;
  #sending = null;
  #all = false;

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute("role", "group");
    this.input = h("input", { type: "file", class: "visually-hidden", tabindex: -1, "aria-hidden": "true", onchange: () => this.#picked(this.input.files) });
    this.button = h("button", { type: "button", class: "button small", onclick: () => this.input.click() }, icon("upload"), t("Choose a file"));
    this.chosen = h("div", { class: "upload-chosen", hidden: true });
    this.problem = h("p", { class: "upload-problem", role: "alert", hidden: true });
    this.progress = h("div", { class: "upload-progress", hidden: true });
    this.spoken = h("p", { class: "visually-hidden", role: "status" });
    this.earlier = h("div", { class: "upload-earlier", hidden: true });
    const rules = uid("upload-rules");
    this.button.setAttribute("aria-describedby", rules);
    this.append(
      this.chosen,
      h("div", { class: "upload-drop" },
        h("p", { class: "upload-ways" }, this.button, this.input, h("span", { class: "caption upload-or" }, t("or drop it here"))),
        h("p", { class: "caption", id: rules }, this.#rules())),
      this.problem,
      this.progress,
      this.spoken,
      ...(this.#form === "text" ? [this.#paste()] : []),
      this.earlier,
    );
    this.addEventListener("dragover", (event) => this.#over(event, true));
    this.addEventListener("dragleave", (event) => !this.contains(event.relatedTarget) && this.#over(event, false));
    this.addEventListener("drop", (event) => this.#dropped(event));
    this.#show();
  }

  get #form() {
    return this.getAttribute("form") ?? "text";
  }

  get value() {
    return this.#value;
  }

  set value(id) {
    this.#value = id;
    if (this.firstChild) this.#show();
  }

  async open() {
    if (this.#items) return;
    this.#items = [];
    try {
      this.#items = await listUploads(this.#form);
    } catch {
      this.#items = null; // asked again next time
      return;
    }
    if (!this.#value && this.#items.length && !this.#sending) this.#choose(this.#items[0]);
    else this.#show();
  }

  // Sending

  #rules() {
    return this.#form === "text"
      ? t("Plain text (.txt) in UTF-8, UTF-16 or GB18030, at most {size}.", { size: bytes(LIMITS.text) })
      : t("Word vectors of word2vec (text or binary) or GloVe, at most {size}.", { size: bytes(LIMITS.vectors) });
  }

  #paste() {
    const id = uid("paste");
    const area = h("textarea", { id, rows: 4, spellcheck: "false", dir: "auto" });
    const use = () => {
      if (!area.value.trim()) this.#refuse(t("There is no text to use yet: paste or type some first."));
      else this.#send(new Blob([area.value], { type: "text/plain" }), t("pasted text"));
    };
    this.pasted = area;
    return h("details", { class: "upload-paste" },
      h("summary", {}, icon("chevron", "turns"), t("Paste a text")),
      h("label", { class: "visually-hidden", for: id }, t("Your text")),
      area,
      h("button", { type: "button", class: "button small", onclick: use }, t("Use this text")));
  }

  #over(event, inside) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.classList.toggle("over", inside);
  }

  #dropped(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.classList.remove("over");
    const folder = [...event.dataTransfer.items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
    if (folder) this.#refuse(t("This is a folder. Drop one file."));
    else this.#picked(event.dataTransfer.files);
  }

  #picked(files) {
    if (files.length > 1) this.#refuse(t("These are {n} files. Take one at a time.", { n: files.length }));
    else if (files.length === 1) this.#send(files[0], files[0].name);
    this.input.value = ""; // the same file may be chosen again once it is mended
  }

  async #send(blob, name) {
    if (this.#sending) return;
    const limit = LIMITS[this.#form];
    if (blob.size > limit) {
      this.#refuse(t("“{name}” has {size}; at most {limit} can be used. Take a part of it.", { name, size: bytes(blob.size), limit: bytes(limit) }));
      return;
    }
    const sending = (this.#sending = new AbortController());
    const onProgress = (share) => this.#sending === sending && this.#progress(name, share); // it may come late
    this.problem.hidden = true;
    this.#progress(name, 0);
    try {
      const upload = await sendUpload(blob, name, { signal: sending.signal, onProgress });
      await this.#came(upload);
    } catch (problem) {
      if (problem.code !== "canceled") this.#refuse(problem.message);
    } finally {
      this.#sending = null;
      this.progress.hidden = true;
      clear(this.progress);
    }
  }

  async #came(upload) {
    if (upload.form !== this.#form) {
      await removeUpload(upload.id).catch(() => {});
      this.#refuse(upload.form === "vectors" ? t("This file holds word vectors, not a text to read.") : t("This file holds text, not word vectors."));
      return;
    }
    this.#items = [upload, ...(this.#items ?? [])];
    if (this.pasted) {
      this.pasted.value = "";
      this.pasted.closest("details").open = false;
    }
    this.#choose(upload);
    this.spoken.textContent = t("“{name}” is chosen: {facts}.", { name: upload.name, facts: facts(upload) });
  }

  #progress(name, share) {
    this.progress.hidden = false;
    const said = share < 1 ? t("Sending “{name}”: {share}", { name, share: percent(share) }) : t("Checking “{name}”…", { name });
    if (!this.progress.firstChild) {
      clear(this.progress,
        h("p", { class: "caption" }),
        h("progress", { max: 1, "aria-label": t("Upload") }),
        h("button", { type: "button", class: "button small quiet", onclick: () => this.#sending?.abort() }, t("Stop")));
      this.spoken.textContent = said;
    }
    this.progress.firstChild.textContent = said;
    const bar = this.progress.querySelector("progress");
    if (share < 1) bar.value = share;
    else bar.removeAttribute("value");
  }

  #refuse(sentence) {
    this.spoken.textContent = "";
    this.problem.textContent = sentence;
    this.problem.hidden = false;
    this.problem.scrollIntoView({ block: "nearest" });
  }

  // Choosing among what is there

  #choose(upload) {
    this.#value = upload?.id ?? null;
    this.problem.hidden = true;
    this.#show();
    emit(this, "upload-change", { upload });
  }

  async #delete(upload, button) {
    button.disabled = true;
    try {
      await removeUpload(upload.id);
    } catch (problem) {
      button.disabled = false;
      if (problem.code !== "upload_not_found") {
        this.#refuse(problem.message);
        return;
      }
    }
    this.#items = this.#items.filter((one) => one.id !== upload.id);
    this.spoken.textContent = t("“{name}” is deleted.", { name: upload.name });
    if (upload.id === this.#value) this.#choose(null);
    else this.#show();
    this.button.focus();
  }

  #show() {
    const upload = this.#value && knownUpload(this.#value);
    this.chosen.hidden = !this.#value;
    clear(this.chosen, upload ? card(upload) : this.#value);
    const items = this.#items ?? [];
    this.earlier.hidden = items.length === 0;
    const shown = this.#all ? items : items.slice(0, SHOWN);
    clear(this.earlier,
      h("h4", { class: "overline" }, this.#form === "text" ? t("My texts") : t("My vectors")),
      h("ul", { class: "upload-list" }, shown.map((one) => this.#row(one))),
      items.length > shown.length && h("button", { type: "button", class: "button small quiet", onclick: () => { this.#all = true; this.#show(); } }, tn("{n} more", "{n} more", items.length - shown.length)));
  }

  #row(upload) {
    const label = t("Delete “{name}”", { name: upload.name });
    const remove = h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick: () => this.#delete(upload, remove) }, icon("bin"));
    return h("li", {},
      h("button", { type: "button", class: "upload-pick", "aria-pressed": String(upload.id === this.#value), title: upload.name, onclick: () => this.#choose(upload) },
        h("span", { class: "upload-name", dir: "auto" }, upload.name),
        h("span", { class: "caption" }, size(upload))),
      remove);
  }
}

const size = ({ form, about }) => form === "text"
  ? tn("{count} character", "{count} characters", about.characters, { count: count(about.characters) })
  : t("{words} words × {dims}", { words: count(about.words), dims: about.dims });

const facts = (upload) => upload.form === "text"
  ? [size(upload), t("{count} different", { count: count(upload.about.distinct) })].join(" · ")
  : size(upload);

/** What was found in a file: its name, its figures, its beginning. */
function card(upload) {
  const { about } = upload;
  const beginning = upload.form === "text" ? Array.from(about.excerpt).slice(0, PREVIEW).join("") : about.first.join(" · ");
  const more = upload.form === "text" ? about.characters > PREVIEW : about.words > about.first.length;
  return [
    h("p", { class: "upload-name" }, icon("file"), h("strong", { dir: "auto", title: upload.name }, upload.name)),
    h("p", { class: "caption", "data-testid": "upload-facts" }, facts(upload)),
    h("blockquote", { class: "upload-preview", dir: "auto", tabIndex: 0, "aria-label": t("How it begins") }, beginning, more ? "…" : null),
  ];
}

customElements.define("upload-field", UploadField);
