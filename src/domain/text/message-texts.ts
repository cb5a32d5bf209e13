import { clone, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
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

/**
 * Returns a copy of a message with its texts rewritten as {@link rewriteTexts} does; the message itself where none of them
 * becomes another. `visit` may get each text twice.
 */
export function withRewrittenTexts<Desc extends DescMessage>(
  desc: Desc,
  message: MessageShape<Desc>,
  path: string,
  visit: VisitText,
): MessageShape<Desc> {
  let isSame = true;
  rewriteTexts(desc, message, path, (each) => {
    if (visit(each) !== each.text) isSame = false;
    return each.text;
  });
  if (isSame) return message;
  const copy = clone(desc, message);
  rewriteTexts(desc, copy, path, visit);
  return copy;
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
        else if (typeof item === "string") {
          const text = visit({ text: item, path: itemPath, field });
          if (text !== item) list.set(index, text);
        }
      }
    } else if (field.fieldKind === "scalar") {
      const value = message.get(field);
      if (typeof value !== "string") continue;
      const text = visit({ text: value, path, field });
      if (text !== value) message.set(field, text);
    }
  }
}
