import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** One text of a message. */
export interface MessageText {
  readonly text: string;
  /** Its JSON path, with the path of the message before it. */
  readonly path: string;
  /** The field that holds it, alone or in a list. */
  readonly field: DescField;
}

/** Returns the replacement of a text. */
export type VisitText = (text: MessageText) => string;

/**
 * Visits every text in a message, including nested messages, and replaces it with the visitor's
 * result. Keys and values of maps are skipped.
 * @param path JSON path of the message; empty for none
 */
export function rewriteTexts<Desc extends DescMessage>(
  desc: Desc,
  message: MessageShape<Desc>,
  path: string,
  visit: VisitText,
): void {
  rewrite(reflect(desc, message), path === "" ? "" : `${path}.`, visit);
}

function rewrite(message: ReflectMessage, prefix: string, visit: VisitText): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const path = prefix + field.jsonName;
    if (field.fieldKind === "message") {
      rewrite(message.get(field), `${path}.`, visit);
    } else if (field.fieldKind === "list") {
      const list = message.get(field);
      for (const [index, item] of list.entries()) {
        const itemPath = `${path}[${index}]`;
        if (field.listKind === "message") rewrite(item as ReflectMessage, `${itemPath}.`, visit);
        else if (typeof item === "string") list.set(index, visit({ text: item, path: itemPath, field }));
      }
    } else if (field.fieldKind === "scalar") {
      const value = message.get(field);
      if (typeof value === "string") message.set(field, visit({ text: value, path, field }));
    }
  }
}
