import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Interceptor } from "@connectrpc/connect";
import { isId, rulesOf } from "../rules.ts";

/** Fields whose ids may have another form in the contract; those that are UUIDs are stored like all. */
const FREE_IDS: ReadonlySet<string> = new Set(["allowed_agent_ids", "scm_tools_allowed_group_id"]);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Values = Record<string, unknown>;
type Edit = (message: Values) => void;

/**
 * Writes ids in lower case, the form in which they are stored, wherever the
 * contract says that a string is an id. Runs before validation, so that
 * everything behind the edge sees one form only.
 */
export const lowerCaseIds: Interceptor = (next) => (req) => {
  const edit = editOf(req.method.input);
  if (!edit) return next(req);
  if (req.stream) return next({ ...req, message: edited(edit, req.message) });
  edit(req.message as unknown as Values);
  return next(req);
};

/** Writes the ids of one message in lower case, in place. */
export function lowerCaseIdsOf(schema: DescMessage, message: MessageShape<DescMessage>): void {
  editOf(schema)?.(message as unknown as Values);
}

async function* edited<M>(edit: Edit, messages: AsyncIterable<M>): AsyncIterable<M> {
  for await (const message of messages) {
    edit(message as unknown as Values);
    yield message;
  }
}

const edits = new Map<DescMessage, Edit | undefined>();

/** Returns the edit of a message; undefined when no id can be in it. */
function editOf(message: DescMessage): Edit | undefined {
  if (edits.has(message)) return edits.get(message);
  edits.set(message, undefined); // A message that contains itself ends here.
  const fields = message.fields.flatMap((field) => fieldEdit(field) ?? []);
  const edit: Edit | undefined =
    fields.length > 0
      ? (values) => {
          for (const each of fields) each(values);
        }
      : undefined;
  edits.set(message, edit);
  return edit;
}

function fieldEdit(field: DescField): Edit | undefined {
  const change = valueChange(field);
  if (!change) return undefined;
  const { localName } = field;
  if (field.oneof) {
    const oneof = field.oneof.localName;
    return (message) => {
      const choice = message[oneof] as { case?: string; value?: unknown };
      if (choice.case === localName) choice.value = change(choice.value);
    };
  }
  return (message) => {
    const value = message[localName];
    if (value !== undefined) message[localName] = change(value);
  };
}

function valueChange(field: DescField): ((value: unknown) => unknown) | undefined {
  const rules = rulesOf(field);
  if (field.fieldKind === "scalar") return textChange(field, rules);
  if (field.fieldKind === "list" && field.listKind === "scalar") {
    const items = rules?.type.case === "repeated" ? rules.type.value.items : undefined;
    const change = textChange(field, items);
    return change && ((list) => (list as unknown[]).map(change));
  }
  const nested = field.fieldKind === "enum" ? undefined : field.message && editOf(field.message);
  if (!nested) return undefined;
  return (value) => {
    if (field.fieldKind === "list") for (const element of value as Values[]) nested(element);
    else if (field.fieldKind === "map")
      for (const element of Object.values(value as Values)) nested(element as Values);
    else nested(value as Values);
    return value;
  };
}

function textChange(
  { name }: DescField,
  rules: FieldRules | undefined,
): ((value: unknown) => unknown) | undefined {
  if (isId(rules)) return lowerCase;
  return FREE_IDS.has(name) ? (value) => (UUID.test(String(value)) ? lowerCase(value) : value) : undefined;
}

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}
