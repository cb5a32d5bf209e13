import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import { isJsonObject } from "../../domain/json-object.ts";

/** The error for an invalid line; its message gives the reason. */
export class InvalidAgentLine extends Error {
  override readonly name = "InvalidAgentLine";
}

/** Parses a message of the contract from JSON; ignores unknown fields. */
export function parseContractMessage<T extends DescMessage>(
  schema: T,
  value: JsonValue,
  name: string,
): MessageShape<T> {
  try {
    return fromJson(schema, value, { ignoreUnknownFields: true });
  } catch (error) {
    throw new InvalidAgentLine(`its ${name} cannot be read: ${(error as Error).message}`);
  }
}

export function requireText(line: JsonObject, name: string, absent?: string): string {
  const value = line[name] ?? absent;
  if (typeof value !== "string") throw new InvalidAgentLine(`its ${name} is no text`);
  return value.toWellFormed();
}

export function requireId(line: JsonObject): string {
  const id = requireText(line, "id");
  if (id === "") throw new InvalidAgentLine("its id is empty");
  return id;
}

/** Returns a string unchanged and any other value as JSON; empty for null and undefined. */
export function textOrJson(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value.toWellFormed() : JSON.stringify(value);
}

/** Reads a list of objects; returns an empty list when the field is missing. */
export function requireObjects(line: JsonObject, name: string): JsonObject[] {
  const value = line[name] ?? [];
  if (!Array.isArray(value) || !value.every((each) => isJsonObject(each)))
    throw new InvalidAgentLine(`its ${name} are no list of objects`);
  return value;
}

/**
 * Reads a member of an enum from its short name in lower case.
 * @param absent the member to return when the field is missing; if undefined, the field is required
 */
export function parseEnumMember<T extends Readonly<Record<string, string | number>>>(
  members: T,
  line: JsonObject,
  name: string,
  absent?: Extract<T[keyof T], number>,
): Extract<T[keyof T], number> {
  if (line[name] === undefined && absent !== undefined) return absent;
  const value = members[requireText(line, name).toUpperCase()];
  if (typeof value !== "number") throw new InvalidAgentLine(`its ${name} is not a known value`);
  return value as Extract<T[keyof T], number>;
}
