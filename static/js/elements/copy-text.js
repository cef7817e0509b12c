/**
 * <copy-text>: a text with a button that copies it. The text stands in its first child, so it is
 * there and can be selected without scripts too.
 */
import { h } from "core/dom";
import { t } from "core/i18n";

class CopyText extends HTMLElement {
  connectedCallback() {
    const text = this.firstElementChild;
    const said = h("span", { class: "visually-hidden", role: "status" });
    const button = h("button", { class: "button small", type: "button" }, t("Copy"));
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = t("Copied");
        said.textContent = t("Copied");
      } catch {
        // Without leave to write to the clipboard the text is selected, ready for the keys.
        getSelection().selectAllChildren(text);
      }
    });
    this.append(button, said);
  }
}

customElements.define("copy-text", CopyText);
