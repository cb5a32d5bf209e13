import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ApprovalOption_Kind as OptionKind, ToolKind } from "#gen/service/v1/approval_pb.js";
import type { ApprovalRequest } from "./approval-requests.ts";
import { InvalidAgentLine, parseEnumMember, requireObjects, requireText } from "./line-values.ts";

/** Parses a line of the type `permission_request`. */
export function parsePermissionRequest(line: JsonObject): ApprovalRequest {
  const value = {
    title: requireText(line, "title"),
    kind: parseEnumMember(ToolKind, line, "kind", ToolKind.OTHER),
    tool: requireText(line, "tool", ""),
    input: textOrJson(line.input),
    locations: texts(line, "locations"),
  };
  const options = requireObjects(line, "options").map((option) => ({
    id: requireText(option, "id"),
    name: requireText(option, "name", ""),
    kind: parseEnumMember(OptionKind, option, "kind"),
  }));
  return { toolCallId: requireId(line), request: { case: "toolCall", value }, options };
}

/** Parses a line of the type `answer_request`. */
export function parseAnswerRequest(line: JsonObject): ApprovalRequest {
  const value = { message: requireText(line, "message"), schemaJson: textOrJson(line.schema) };
  return { toolCallId: requireId(line), request: { case: "question", value } };
}

function requireId(line: JsonObject): string {
  const id = requireText(line, "id");
  if (id === "") throw new InvalidAgentLine("its id is empty");
  return id;
}

function textOrJson(value: JsonValue | undefined): string {
  if (value === undefined) return "";
  return (typeof value === "string" ? value : JSON.stringify(value)).toWellFormed();
}

function texts(line: JsonObject, name: string): string[] {
  const value = line[name] ?? [];
  if (!Array.isArray(value)) throw new InvalidAgentLine(`its ${name} are no list`);
  return value.map((each) => {
    if (typeof each !== "string") throw new InvalidAgentLine(`its ${name} are no list of texts`);
    return each.toWellFormed();
  });
}
