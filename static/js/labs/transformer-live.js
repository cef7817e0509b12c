/** What can be changed while a run goes on. The form always shows the values that the run has. */

import { h } from "core/dom";
import { t } from "core/i18n";
import "elements/params-form";

export class LiveSettings {
  /** `onSet(values)` gets what was changed in the form. */
  constructor({ kind, onSet }) {
    this.form = h("params-form", { kind, live: true, "aria-label": t("Change while it runs") });
    this.node = h("div", { class: "stack", hidden: true }, h("h3", null, t("While it runs")), this.form);
    this.form.addEventListener("params-live", ({ detail: { values } }) => {
      this.asked = JSON.stringify(values);
      onSet(values);
    });
  }

  /** Another run, submitted with `params`. */
  open(params) {
    Object.assign(this, { params, changes: [], asked: null });
    this.#show();
  }

  event({ type, data }) {
    if (type === "resumed") {
      this.changes = this.changes.filter(({ step }) => step < data.from_step); // its checkpoint's values
      this.#show();
    } else if (type === "control" && data.action === "set") {
      this.changes.push(data);
      const own = JSON.stringify(data.values) === this.asked; // whoever typed it may be typing on
      if (own) this.asked = null;
      else this.#show();
    }
  }

  #show() {
    this.form.values = Object.assign({}, this.params, ...this.changes.map(({ values }) => values));
  }
}
