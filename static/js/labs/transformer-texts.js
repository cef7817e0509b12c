/** The training text that params name: one that the lab brings along, or an uploaded file. */

import { t } from "core/i18n";
import { knownUpload } from "core/uploads";

/** `{name, title, tokens, vocabulary, probe, excerpt, source, licence}`; null for one not known. */
export function textOf({ data }, texts) {
  const listed = texts.find((one) => one.name === data);
  const upload = listed ? null : knownUpload(data);
  if (!upload) return listed ?? null;
  const { characters, distinct, first, excerpt } = upload.about;
  return {
    name: upload.id, title: upload.name, tokens: characters, vocabulary: distinct, probe: first, excerpt: Array.from(excerpt).slice(0, 220).join(""),
    source: t("Your own file."), licence: "",
  };
}
