/** Icons of the one sprite, the same that templates use by `{% icon %}`. */
import { svg } from "core/dom";

/** An icon by its name in `static/img/icons.svg`. It is decoration: name the control itself. */
export function icon(name, classes = "") {
  const sheet = document.documentElement.dataset.icons;
  return svg(
    "svg",
    { class: `icon ${classes}`.trim(), "aria-hidden": "true" },
    svg("use", { href: `${sheet}#${name}` }),
  );
}
