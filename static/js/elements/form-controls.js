/**
 * Controls of <params-form>: one per field of a JSON Schema. Each is `{node, get, set, focusable}`;
 * a change calls `changed()`. Text goes in as text, values come out typed.
 */
import { h } from "core/dom";
import { short } from "core/format";
import { msg, pick, t } from "core/i18n";
import { icon } from "core/icons";
import "elements/upload-field";

const UNITS = {
  tokens: msg("tokens"),
  characters: msg("characters"),
  steps: msg("steps"),
  evaluations: msg("evaluations"),
  seconds: msg("seconds"),
};
const SLIDER_STEPS = 1000;
const OWN = "own file"; // in the select alone; no choice has a space in its name
const SEGMENTS = 3;
const SEGMENT_CHARACTERS = 26;

/** A unit in the page's language; symbols such as MB stay. */
const unitText = (unit) => (unit in UNITS ? t(UNITS[unit]) : (unit ?? ""));

/** What a field is, read out of its schema once. */
export function describe(name, schema, required) {
  const types = [schema.type].flat();
  const type = types.find((one) => one && one !== "null") ?? "string";
  const listed = schema.enum ?? schema.anyOf?.find((one) => one.enum)?.enum ?? [];
  const choices = listed.filter((value) => value !== null);
  return {
    name,
    schema,
    type,
    choices,
    required,
    nullable: types.includes("null"),
    numeric: type === "integer" || type === "number",
    low: schema.minimum ?? schema.exclusiveMinimum ?? null,
    high: schema.maximum ?? schema.exclusiveMaximum ?? null,
    widget: schema["x-widget"] ?? null,
    upload: schema["x-upload"] ?? null,
    label: pick(schema["x-label"]) || name,
    help: pick(schema["x-help"]),
    group: pick(schema["x-group"]),
    unit: unitText(schema["x-unit"]),
    advanced: schema["x-advanced"] === true,
    fallback: schema.default ?? null,
  };
}

/** The control that suits a field. `ids`: `{control, label, describedby}`. */
export function control(field, ids, changed) {
  if (field.upload) return uploadControl(field, ids, changed);
  if (field.choices.length > 0) return choiceControl(field, ids, changed);
  if (field.type === "boolean") return switchControl(field, ids, changed);
  if (field.numeric) return numberControl(field, ids, changed);
  return textControl(field, ids, changed);
}

const choiceLabel = (field, value) => pick(field.schema["x-choices"]?.[value]) || String(value);

function choiceControl(field, ids, changed) {
  const labels = field.choices.map((value) => choiceLabel(field, value));
  const few = labels.length <= SEGMENTS && labels.join("").length <= SEGMENT_CHARACTERS;
  const wanted = field.widget ?? (few ? "segmented" : "select");
  return wanted === "segmented"
    ? segmentedControl(field, labels, ids, changed)
    : selectControl(field, labels, ids, changed);
}

function selectControl(field, labels, ids, changed) {
  const options = field.choices.map((value, i) => h("option", { value: String(i) }, labels[i]));
  const node = h("select", { id: ids.control, "aria-describedby": ids.describedby }, options);
  node.addEventListener("change", changed);
  return {
    node,
    focusable: node,
    get: () => field.choices[Number(node.value)],
    set: (value) => (node.value = String(field.choices.indexOf(value))),
  };
}

/** What the kind knows by itself, and last one's own file, which stands in for the choice x-own. */
function uploadControl(field, ids, changed) {
  const own = field.schema["x-own"] ?? null;
  const choices = field.choices.filter((value) => value !== own);
  const options = choices.map((value) => h("option", { value }, choiceLabel(field, value)));
  const last = own === null ? t("My own file") : choiceLabel(field, own);
  const select = h("select", { id: ids.control, "aria-describedby": ids.describedby }, options, h("option", { value: OWN }, last));
  const panel = h("upload-field", { form: field.upload, "aria-label": last, hidden: true });
  const show = () => {
    panel.hidden = select.value !== OWN;
    if (!panel.hidden) panel.open();
  };
  select.addEventListener("change", () => {
    show();
    changed();
  });
  panel.addEventListener("upload-change", changed);
  return {
    node: h("div", { class: "upload-control" }, select, panel),
    focusable: select,
    missing: () => select.value === OWN && !panel.value,
    get: () => (select.value === OWN ? (panel.value ?? own) : select.value),
    set(value) {
      const listed = choices.includes(value);
      select.value = listed ? value : OWN;
      if (!listed && value !== own) panel.value = value;
      show();
    },
  };
}

function segmentedControl(field, labels, ids, changed) {
  const radios = field.choices.map((_, i) =>
    h("input", { type: "radio", name: ids.control, value: String(i), onchange: changed }),
  );
  const node = h(
    "div",
    { class: "segmented", role: "radiogroup", id: ids.control, "aria-labelledby": ids.label, "aria-describedby": ids.describedby },
    radios.map((radio, i) => h("label", {}, radio, h("span", {}, labels[i]))),
  );
  return {
    node,
    get focusable() {
      return radios.find((radio) => radio.checked) ?? radios[0];
    },
    get: () => field.choices[radios.findIndex((radio) => radio.checked)] ?? null,
    set: (value) => radios.forEach((radio, i) => (radio.checked = field.choices[i] === value)),
  };
}

function switchControl(field, ids, changed) {
  const box = h("input", {
    type: "checkbox",
    role: "switch",
    id: ids.control,
    "aria-describedby": ids.describedby,
    onchange: changed,
  });
  return {
    node: h("span", { class: "switch" }, box, h("span", { class: "switch-track" })),
    inline: true,
    focusable: box,
    get: () => box.checked,
    set: (value) => (box.checked = value === true),
  };
}

function textControl(field, ids, changed) {
  const long = field.widget === "textarea" || (field.schema.maxLength ?? 0) > 1000;
  const node = h(long ? "textarea" : "input", {
    id: ids.control,
    type: long ? null : "text",
    rows: long ? 4 : null,
    maxlength: field.schema.maxLength,
    spellcheck: "false",
    dir: "auto",
    autocomplete: "off",
    "aria-describedby": ids.describedby,
    oninput: changed,
  });
  return {
    node,
    focusable: node,
    get: () => (node.value === "" && field.nullable ? null : node.value),
    set: (value) => (node.value = value ?? ""),
  };
}

function numberControl(field, ids, changed) {
  const box = h("input", {
    type: "number",
    id: ids.control,
    class: "number-box",
    step: field.type === "integer" ? "1" : "any",
    min: field.low,
    max: field.high,
    "aria-describedby": ids.describedby,
    placeholder: field.nullable ? t("auto") : null,
  });
  const slider = isSeed(field) ? null : sliderFor(field);
  const get = () => (box.value.trim() === "" ? null : Number(box.value));
  const show = () => slider?.show(get() ?? field.low);
  box.addEventListener("input", () => {
    show();
    changed();
  });
  slider?.node.addEventListener("input", () => {
    box.value = String(slider.value());
    slider.paint();
    changed();
  });
  return {
    node: slider?.node ?? null,
    box: isSeed(field) ? withDice(box, field, changed) : box,
    focusable: box,
    invalid: () => box.validity.badInput,
    get,
    set(value) {
      box.value = value === null || value === undefined ? "" : String(value);
      show();
    },
  };
}

const isSeed = (field) => field.name === "seed" || field.widget === "seed";

function withDice(box, field, changed) {
  const roll = () => {
    box.value = String(Math.floor(Math.random() * Math.min(100_000, (field.high ?? 1e5) + 1)));
    changed();
  };
  const label = t("Another seed");
  const button = h(
    "button",
    { type: "button", class: "icon-button dice", "aria-label": label, title: label, onclick: roll },
    icon("dice"),
  );
  return h("span", { class: "with-dice" }, box, button);
}

/**
 * A slider for a bounded number. Wide ranges run on a logarithmic track and stop at round values;
 * an open lower end (`> 0`) starts three decades below the default.
 */
function sliderFor(field) {
  const scale = scaleOf(field);
  if (!scale || field.widget === "number") return null;
  const node = h("input", {
    type: "range",
    min: 0,
    max: SLIDER_STEPS,
    step: 1,
    tabindex: -1, // the number box is the keyboard's way in
    "aria-hidden": "true",
  });
  const paint = () => node.style.setProperty("--fill", Number(node.value) / SLIDER_STEPS);
  return {
    node,
    paint,
    value: () => scale.value(Number(node.value) / SLIDER_STEPS),
    show(value) {
      node.value = String(Math.round(scale.position(value) * SLIDER_STEPS));
      paint();
    },
  };
}

function scaleOf({ type, low, high, schema, fallback }) {
  if (low === null || high === null) return null;
  const whole = type === "integer";
  const open = !whole && schema.exclusiveMinimum === 0;
  if (open && high > 1) {
    const size = Math.log10(fallback || 1);
    const from = 10 ** Math.floor(size - 2);
    return logScale(from, Math.min(high, 10 ** Math.ceil(size + 3)), whole);
  }
  if (low > 0 && high / low >= 100) return logScale(low, high, whole);
  if (low === 0 && high >= 100) return logScale(0, high, whole);
  return {
    position: (value) => (value - low) / (high - low),
    value: (p) => (whole ? Math.round(low + p * (high - low)) : round(low + p * (high - low), 2)),
  };
}

function logScale(low, high, whole) {
  const shift = low > 0 ? 0 : 1;
  const from = Math.log(low + shift);
  const to = Math.log(high + shift);
  return {
    position: (value) => (Math.log(Math.max(value + shift, low + shift, 1e-300)) - from) / (to - from),
    value(p) {
      if (p <= 0) return low;
      if (p >= 1) return high;
      const value = round(Math.exp(from + p * (to - from)) - shift, 2);
      return Math.min(high, Math.max(low, whole ? Math.round(value) : value));
    },
  };
}

const round = (value, digits) => Number(value.toPrecision(digits));

/** What is wrong with a value by the schema alone: `{detail, nearest}` or null. */
export function complaint(field, entry) {
  const value = entry.get();
  if (entry.missing?.()) return { detail: t("Choose a file first, or one of the texts above.") };
  if (entry.invalid?.()) return { detail: t("This is not a number.") };
  if (value === null || value === "") {
    return field.required && !field.nullable ? { detail: t("Fill this in.") } : null;
  }
  if (!field.numeric) return null;
  if (field.type === "integer" && !Number.isInteger(value)) {
    return { detail: t("A whole number is needed."), nearest: [Math.round(value)] };
  }
  const { schema, low, high } = field;
  const under = value < low || (schema.exclusiveMinimum !== undefined && value <= low);
  if (low !== null && under) {
    const nearest = schema.minimum === undefined ? undefined : [low];
    return { detail: tooSmall(schema, low), nearest };
  }
  if (high !== null && value > high) {
    return { detail: t("At most {max}.", { max: short(high) }), nearest: [high] };
  }
  return null;
}

const tooSmall = (schema, low) =>
  schema.minimum === undefined
    ? t("More than {min}.", { min: short(low) })
    : t("At least {min}.", { min: short(low) });
