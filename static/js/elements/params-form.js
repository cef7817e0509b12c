/**
 * <params-form>: a form made from a kind's JSON Schema. A new parameter is a new control.
 *
 * Attributes
 *   kind="transformer.train"  loads the schema of that kind by itself
 *   action="Train"            text of the main button; without it there is none
 *   main="data lr"            fields that stay unfolded, in this order
 *   open                      nothing is folded but the advanced fields
 *   live                      only the settable fields; a change sends params-live
 * Properties
 *   schema      the kind's schema (as `GET kinds/{name}` gives it)
 *   presets     [{id, title, summary, values}]; the first is chosen unless values were set
 *   values      get: every param, typed; set: merged over the defaults
 *   visible     {field: (values) => boolean}, for fields that make sense only with others
 *   check       (values) => [{pointer, detail, nearest?}]: rules across fields, asked on each change
 *   note        a string or node under the main button, for live estimates
 *   busy        true while a submission is under way
 * Methods
 *   showProblems(problem)   a Problem or [{pointer, detail, nearest?}]: each at its field
 *   clearProblems()
 * Events (all bubble)
 *   params-ready            {schema, values}  drawn and filled
 *   params-change           {values, name}    name is null for a preset or a reset
 *   params-submit           {kind, values}    the main button, or Enter
 *   params-live             {values}          live mode: only what has changed
 */
import { clear, debounce, emit, h, uid } from "core/dom";
import { pick, t, tn } from "core/i18n";
import { icon } from "core/icons";
import { kind as kindSchema } from "core/jobs";
import { describe } from "elements/form-controls";
import { Field } from "elements/form-field";

const LIVE_PAUSE_MS = 350;

export class ParamsForm extends HTMLElement {
  #schema = null;
  #presets = [];
  #preset = null;
  #fieldsByName = new Map();
  #pending = null;
  #visible = {};
  #check = () => [];
  #note = "";
  #busy = false;
  #sent = {};

  connectedCallback() {
    const name = this.getAttribute("kind");
    if (this.#schema || !name) return;
    kindSchema(name).then(
      (schema) => (this.schema = schema),
      (problem) => clear(this, h("p", { class: "notice error" }, problem.message)),
    );
  }

  get schema() {
    return this.#schema;
  }

  set schema(schema) {
    this.#schema = schema;
    this.#render();
  }

  get presets() {
    return this.#presets;
  }

  set presets(presets) {
    this.#presets = presets;
    if (this.#schema) this.#render();
  }

  get preset() {
    return this.#preset;
  }

  get values() {
    const values = {};
    for (const [name, field] of this.#fieldsByName) values[name] = field.value;
    return values;
  }

  set values(values) {
    this.#pending = { ...values };
    if (this.#schema) this.#fill(this.#pending, null);
  }

  set visible(rules) {
    this.#visible = rules;
    this.#applyVisibility();
  }

  set check(check) {
    this.#check = check;
  }

  set note(note) {
    this.#note = note;
    const place = this.querySelector(".params-note");
    if (place) clear(place, note);
  }

  set busy(busy) {
    this.#busy = busy;
    this.toggleAttribute("aria-busy", busy);
    const button = this.querySelector(".params-action");
    if (button) button.disabled = busy;
  }

  showProblems(problem) {
    this.clearProblems();
    const list = Array.isArray(problem) ? problem : (problem.errors ?? []);
    const general = [];
    for (const one of list) {
      const name = (one.pointer ?? "").replace(/^\/(params\/)?/, "").split("/")[0];
      const field = this.#fieldsByName.get(name);
      if (field && !field.hidden) field.showProblem(one);
      else general.push(pick(one.detail));
    }
    if (list.length === 0 && problem.message) general.push(problem.message);
    const place = this.querySelector(".params-problem");
    if (general.length && place) {
      clear(place, general.map((text) => h("p", {}, text)));
      place.hidden = false;
    }
    const invalid = this.querySelector("[aria-invalid=true]");
    invalid?.focus({ preventScroll: true });
    // The whole row: what is wrong and the values that would do stand under the control.
    (invalid?.closest(".field") ?? place)?.scrollIntoView({ block: "center" });
  }

  clearProblems() {
    for (const field of this.#fieldsByName.values()) field.clearProblem();
    const place = this.querySelector(".params-problem");
    if (place) place.hidden = true;
  }

  // Drawing

  #described() {
    const { params, settable = [] } = this.#schema;
    const required = new Set(params.required ?? []);
    return Object.entries(params.properties)
      .map(([name, schema]) => describe(name, schema, required.has(name)))
      .filter((field) => field.schema["x-widget"] !== "hidden")
      .filter((field) => !this.hasAttribute("live") || settable.includes(field.name));
  }

  #render() {
    const before = this.#fieldsByName.size ? this.values : null;
    this.#fieldsByName.clear();
    const fields = this.#described();
    const form = h(
      "form",
      { class: "params", novalidate: true, onsubmit: (event) => this.#submit(event) },
      this.hasAttribute("live") ? fields.map((field) => this.#row(field)) : this.#parts(fields),
    );
    clear(this, form);
    const preset = this.#presets[0];
    const start = this.#pending ?? before ?? preset?.values ?? {};
    this.#fill(start, this.#pending || before ? null : (preset?.id ?? null), { silent: true });
    emit(this, "params-ready", { schema: this.#schema, values: this.values });
  }

  #parts(fields) {
    const main = (this.getAttribute("main") ?? "").split(/\s+/).filter(Boolean);
    const first = main.map((name) => fields.find((field) => field.name === name)).filter(Boolean);
    const rest = fields.filter((field) => !main.includes(field.name));
    const action = this.getAttribute("action");
    return [
      this.#presetList(),
      first.map((field) => this.#row(field)),
      h("div", { class: "notice error params-problem", role: "alert", hidden: true }),
      action &&
        h(
          "button",
          { class: "button primary big wide params-action", disabled: this.#busy },
          icon("play"),
          action,
        ),
      h("div", { class: "caption params-note", "aria-live": "polite" }, this.#note),
      rest.length > 0 && this.#rest(rest),
    ];
  }

  #presetList() {
    if (this.#presets.length === 0) return null;
    const name = uid("preset");
    const choose = (preset) => this.#fill(preset.values, preset.id);
    return h(
      "fieldset",
      { class: "presets" },
      h("legend", { class: "visually-hidden" }, t("Start from")),
      this.#presets.map((preset) =>
        h(
          "label",
          { class: "preset" },
          h("input", { type: "radio", name, value: preset.id, onchange: () => choose(preset) }),
          h("span", { class: "preset-title" }, pick(preset.title)),
          preset.summary && h("span", { class: "preset-summary" }, pick(preset.summary)),
        ),
      ),
    );
  }

  #rest(fields) {
    const groups = Map.groupBy
      ? Map.groupBy(fields, (field) => field.group)
      : fields.reduce((map, f) => map.set(f.group, [...(map.get(f.group) ?? []), f]), new Map());
    const sections = [...groups].map(([title, members]) => this.#group(title, members));
    if (this.hasAttribute("open")) return sections;
    return h(
      "details",
      { class: "params-rest" },
      h(
        "summary",
        {},
        icon("chevron", "turns"),
        h("span", {}, t("Settings")),
        h("span", { class: "caption params-changed" }),
      ),
      sections,
      h(
        "button",
        {
          type: "button",
          class: "button small quiet params-reset",
          onclick: () => this.#fill(this.#base(), this.#preset),
        },
        icon("reset"),
        t("Reset"),
      ),
    );
  }

  #group(title, fields) {
    const plain = fields.filter((field) => !field.advanced);
    const advanced = fields.filter((field) => field.advanced);
    return h(
      "fieldset",
      { class: "params-group" },
      title && h("legend", { class: "overline" }, title),
      plain.map((field) => this.#row(field)),
      advanced.length > 0 &&
        h(
          "details",
          { class: "params-advanced" },
          h("summary", {}, icon("chevron", "turns"), tn("{n} more", "{n} more", advanced.length)),
          advanced.map((field) => this.#row(field)),
        ),
    );
  }

  #row(about) {
    const field = new Field(about, {
      onChange: () => this.#changed(field),
      onTake: (value, text) => this.#take(field, value, text),
    });
    this.#fieldsByName.set(about.name, field);
    return field.row;
  }

  // Values

  #defaults() {
    return Object.fromEntries([...this.#fieldsByName].map(([name, { about }]) => [name, about.fallback]));
  }

  #base() {
    const preset = this.#presets.find((one) => one.id === this.#preset);
    return { ...this.#defaults(), ...preset?.values };
  }

  #fill(values, preset, { silent = false } = {}) {
    const all = { ...this.#defaults(), ...values };
    for (const [name, field] of this.#fieldsByName) {
      field.value = all[name];
      field.touched = false;
    }
    this.#pending = null;
    this.#sent = this.values;
    this.#preset = preset;
    for (const radio of this.querySelectorAll(".presets input")) {
      radio.checked = radio.value === preset;
    }
    this.clearProblems();
    this.#after();
    if (!silent) emit(this, "params-change", { values: this.values, name: null });
  }

  #changed(field) {
    field.touched = true;
    this.#judge();
    this.#after();
    emit(this, "params-change", { values: this.values, name: field.about.name });
    if (this.hasAttribute("live")) this.#sendLive();
  }

  /** What is wrong as far as the page can tell: touched fields alone, then rules across fields. */
  #judge() {
    this.clearProblems();
    const found = [];
    for (const field of this.#fieldsByName.values()) {
      const complaint = field.touched ? field.complaint : null;
      if (complaint) found.push([field, complaint]);
    }
    if (!found.length) {
      for (const one of this.#check(this.values)) {
        const field = this.#fieldsByName.get(one.pointer.slice(1));
        if (field && !field.hidden) found.push([field, one]);
      }
    }
    for (const [field, one] of found) field.showProblem(one);
  }

  #after() {
    this.#applyVisibility();
    const place = this.querySelector(".params-changed");
    if (!place) return;
    const base = this.#base();
    const n = Object.entries(this.values).filter(([name, value]) => value !== base[name]).length;
    place.textContent = n ? tn("{n} changed", "{n} changed", n) : "";
    this.querySelector(".params-reset").hidden = n === 0;
  }

  #applyVisibility() {
    const values = this.values;
    for (const [name, rule] of Object.entries(this.#visible)) {
      const field = this.#fieldsByName.get(name);
      if (field) field.hidden = !rule(values);
    }
  }

  #sendLive = debounce(() => {
    const values = this.values;
    const changed = Object.entries(values).filter(([name, value]) => value !== this.#sent[name]);
    if (changed.length === 0 || this.querySelector("[aria-invalid=true]")) return;
    this.#sent = values;
    emit(this, "params-live", { values: Object.fromEntries(changed) });
  }, LIVE_PAUSE_MS);

  #submit(event) {
    event.preventDefault();
    if (this.#busy || this.hasAttribute("live")) return;
    const problems = [];
    for (const [name, field] of this.#fieldsByName) {
      const found = field.complaint;
      if (found) problems.push({ pointer: `/${name}`, ...found });
    }
    if (problems.length) {
      this.showProblems(problems);
      return;
    }
    this.clearProblems();
    emit(this, "params-submit", { kind: this.#schema.name, values: this.values });
  }

  /** One value answers every field that complained with the same sentence. */
  #take(field, value, text) {
    field.value = value;
    this.#changed(field);
    field.control.focusable.focus();
  }
}

customElements.define("params-form", ParamsForm);
