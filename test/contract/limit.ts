import { type DescMessage, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { ConstraintViolated, createCheck } from "../../src/rpc/check.ts";

export const ID = "0191f7a0-5c3e-7d1a-8b2f-000000000001";

/** Returns texts of so many characters: of one byte each, and of four bytes and two UTF-16 units each. */
export function texts(...lengths: number[]): string[] {
  return lengths.flatMap((length) => ["x".repeat(length), "😀".repeat(length)]);
}

/** Returns a list of so many equal elements. */
export function lists(element: JsonValue, ...lengths: number[]): JsonValue[][] {
  return lengths.map((length) => Array<JsonValue>(length).fill(element));
}

/** Returns a map of so many entries. */
export function maps(...sizes: number[]): JsonObject[] {
  return sizes.map((size) =>
    Object.fromEntries(Array.from({ length: size }, (_, index) => [`key_${index}`, ""])),
  );
}

/** Returns so many bytes as JSON carries them. */
export function bytes(...lengths: number[]): string[] {
  return lengths.map((length) => Buffer.alloc(length).toString("base64"));
}

/** Returns a copy of a request with a value at a path such as `triggers[0].context`. */
export function withValue(request: JsonValue, path: string, value: JsonValue): JsonObject {
  const copy = structuredClone(request);
  const keys = path.split(/[.[\]]+/).filter((key) => key !== "");
  let at = copy as Record<string, JsonValue | undefined>;
  for (const key of keys.slice(0, -1)) {
    at[key] ??= {};
    at = at[key] as typeof at;
  }
  at[keys.at(-1) as string] = value;
  return copy as JsonObject;
}

const check = createCheck();

/** Returns the violation that the rules of the contract find in a request; undefined when it is valid. */
export function complaint(schema: DescMessage, request: JsonValue): string | undefined {
  try {
    check(schema, fromJson(schema, request));
  } catch (error) {
    if (error instanceof ConstraintViolated) return error.message;
    throw error;
  }
  return undefined;
}

/** Returns a value in a form short enough for a test's name. */
export function brief(value: JsonValue): string {
  if (typeof value === "string" && value.length > 24) return `a text of ${[...value].length} characters`;
  if (Array.isArray(value)) return `${value.length} × ${JSON.stringify(value[0])?.slice(0, 40)}`;
  if (typeof value === "object" && value !== null && Object.keys(value).length > 1) {
    return `${Object.keys(value).length} entries`;
  }
  return JSON.stringify(value);
}
