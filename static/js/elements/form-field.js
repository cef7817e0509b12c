/**
 * One field of <params-form>: its row (label, help, control, unit), its value, and what is wrong
 * with it.
 */
import { clear, h, uid } from "core/dom";
import { short } from "core/format";
import { pick, t } from "core/i18n";
import { complaint, control } from "elements/form-controls";

export class Field {
  /** `about` is what `describe` made; `onChange()` after each change, `onTake(value, text)` for a chip. */
  constructor(about, { onChange, onTake }) {
    const id = uid(`param-${about.name}`);
    const ids = { control: id, label: `${id}-label`, describedby: `${id}-help ${id}-problem` };
    this.about = about;
    this.onTake = onTake;
    this.control = control(about, ids, onChange);
    this.problem = h("div", { class: "field-problem", id: `${id}-problem`, hidden: true });
    this.fixed = about.choices.length === 1 && !about.nullable; // nothing to choose: never shown
    this.row = this.#row(ids);
  }

  get hidden() {
    return this.row.hidden;
  }

  set hidden(hidden) {
    this.row.hidden = hidden || this.fixed;
  }

  get value() {
    return this.control.get();
  }

  set value(value) {
    this.control.set(value);
  }

  /** What is wrong by the schema alone: `{detail, nearest}` or null. */
  get complaint() {
    return this.hidden ? null : complaint(this.about, this.control);
  }

  #row(ids) {
    const { about, control: made } = this;
    const help = about.help && h("p", { class: "caption field-help", id: `${ids.control}-help`, hidden: true }, about.help);
    return h(
      "div",
      { class: `field ${made.inline ? "inline" : ""}`, hidden: this.fixed, dataset: { field: about.name } },
      h(
        "div",
        { class: "field-head" },
        h("label", { for: ids.control, id: ids.label, title: about.help || null }, about.label),
        help && helpButton(about, help),
        h("span", { class: "field-space" }),
        made.box ?? (made.inline ? made.node : null),
        about.unit && h("span", { class: "caption field-unit" }, about.unit),
      ),
      made.inline ? null : made.node,
      help,
      this.problem,
    );
  }

  showProblem({ detail, nearest }) {
    const text = pick(detail);
    this.control.focusable.setAttribute("aria-invalid", "true");
    this.problem.hidden = false;
    this.problem.dataset.detail = text;
    const chips = (nearest ?? []).map((value) =>
      h(
        "button",
        { type: "button", class: "chip", onclick: () => this.onTake(value, text) },
        this.about.numeric ? short(value, 12) : String(value),
      ),
    );
    clear(
      this.problem,
      h("p", {}, text),
      chips.length > 0 &&
        h("p", { class: "chips" }, h("span", {}, t("Use:")), chips),
    );
    for (let up = this.row.closest("details"); up; up = up.parentElement.closest("details")) {
      up.open = true;
    }
  }

  /** True while the field complains with this very sentence. */
  says(text) {
    return this.problem.dataset.detail === text;
  }

  clearProblem() {
    this.control.focusable.removeAttribute("aria-invalid");
    this.problem.hidden = true;
    delete this.problem.dataset.detail;
  }
}

/** Help is a click away, and always in the description that screen readers hear. */
function helpButton(about, help) {
  const toggle = (event) => {
    help.hidden = !help.hidden;
    event.currentTarget.setAttribute("aria-expanded", String(!help.hidden));
  };
  return h(
    "button",
    {
      type: "button",
      class: "help-button",
      "aria-label": t("About {name}", { name: about.label }),
      "aria-expanded": "false",
      title: about.help,
      onclick: toggle,
    },
    "?",
  );
}
