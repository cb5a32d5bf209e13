import { type DocumentView, resolve, type SchemaView } from "./document.ts";
import { escaped, frame, paragraphs } from "./html.ts";

/** Keywords that limit a value, in the order in which a page names them. */
const LIMITS = [
  "minLength",
  "maxLength",
  "pattern",
  "not",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "propertyNames",
  "const",
];

/** Returns the page of a message or an enum; undefined for a name that the document does not have. */
export function schemaPage(document: DocumentView, name: string): string | undefined {
  if (!Object.hasOwn(document.components.schemas, name)) return undefined;
  const schema = document.components.schemas[name] ?? {};
  const usual = name.replace(/_InRequest$/, "");
  const isInput = usual !== name;
  const form = isInput
    ? `<p>The form in requests, to which the rules apply. <a href="/docs/api/types/${usual}">The form in answers</a>.</p>`
    : "";
  const title = isInput ? `${usual}, in requests` : name;
  return frame({ title, body: `${form}${paragraphs(schema.description ?? "")}${fieldTable(schema)}` });
}

/** Returns the table of a message's fields; empty for a message without fields. */
function fieldTable({ properties = {}, required = [] }: SchemaView): string {
  const rows = Object.entries(properties).map(([name, field]) => {
    const marks = [required.includes(name) && "required", field.deprecated && "deprecated"];
    const shown = marks.filter((mark) => mark).map((mark) => ` <small>${mark}</small>`);
    return `<tr><th scope="row"><code>${escaped(name)}</code>${shown.join("")}</th><td>${typeOf(field)}${limitsOf(field)}</td><td>${paragraphs(field.description ?? "")}</td></tr>`;
  });
  if (rows.length === 0) return "";
  return `<div class="wide"><table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></div>`;
}

/** Returns the type of a value as HTML, with links to the pages of messages and enums. */
export function typeOf(schema: SchemaView): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    const shown = name.replace(/_InRequest$/, "").replace(/^\w+\.v\d+\./, "");
    return `<a href="/docs/api/types/${name}">${escaped(shown)}</a>`;
  }
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === "object") return `map to ${typeOf(schema.additionalProperties)}`;
  if (schema.anyOf) return typeOf(schema.anyOf[0] ?? {});
  if (schema.enum) return schema.enum.map((value) => `<code>${escaped(value)}</code>`).join(", ");
  if (schema.contentEncoding) return `bytes, ${escaped(schema.contentEncoding)}`;
  return escaped([schema.type, schema.format].filter((part) => part).join(", ") || "any value");
}

/** Returns the limits of a value, and those of its items or members. */
function limitsOf(schema: SchemaView): string {
  const own = LIMITS.filter((keyword) => schema[keyword] !== undefined).map(
    (keyword) => `${keyword} ${JSON.stringify(schema[keyword])}`,
  );
  const inner =
    schema.items ?? (typeof schema.additionalProperties === "object" && schema.additionalProperties);
  const list = own.map((limit) => `<li><code>${escaped(limit)}</code></li>`).join("");
  return `${list && `<ul class="limits">${list}</ul>`}${inner && !inner.$ref ? limitsOf(inner) : ""}`;
}

/** Returns the fields of the message in a body, with a link to its page. */
export function bodyTable(document: DocumentView, schema: SchemaView): string {
  const [, message] = resolve(document, schema);
  return fieldTable(message) || "<p>No fields.</p>";
}
