import type { JsonValue } from "@bufbuild/protobuf";
import type { PaginationRequest } from "#gen/service/v1/pagination_pb.js";
import { pageTokenInvalid } from "./error.ts";
import { isJsonObject } from "./json-object.ts";

/** Page size when the request names 0 or none (contract, PaginationRequest). */
export const DEFAULT_PAGE_SIZE = 25;

/** Version of the token format; a later format gets another number. */
const TOKEN_VERSION = 1;
const MAC_BYTES = 16;

/** Position of the last row of a page in the order of its query. */
export interface PagePosition {
  /** Sort key before the id: a score or a time; 0 in an order by a text or by id alone. */
  readonly key: number;
  /** Sort key in an order by a text, which is not empty; absent in every other order. */
  readonly text?: string;
  /** Lower-case UUID. */
  readonly id: string;
}

/** Computes a message authentication code with a key of the server; 16 bytes or more. */
export type Mac = (bytes: Uint8Array) => Uint8Array;

/** Compares bytes in a time that does not depend on where they differ. */
export type EqualBytes = (one: Uint8Array, other: Uint8Array) => boolean;

/** Returns the position of a row in an order by id alone. */
export function positionById({ id }: { readonly id: string }): PagePosition {
  return { key: 0, id };
}

export interface PageTokens {
  /** Returns the token that continues `query` after `position`. */
  issue(query: string, position: PagePosition): string;
  /**
   * Returns the position in a token, or undefined for an empty one.
   * @throws DomainError PAGE_TOKEN_INVALID for a token of another query, or one that this server
   * did not issue
   */
  read(query: string, token: string): PagePosition | undefined;
}

/** Lengths of a double and a UUID; the text, if any, follows to the end. */
const KEY_BYTES = 8;
const POSITION_BYTES = KEY_BYTES + 16;

/**
 * Returns an issuer and reader of page tokens. A token is a version byte, a MAC over query and
 * position, and the position: it cannot be forged, and is useless for any other query.
 */
export function createPageTokens(mac: Mac, equalBytes: EqualBytes): PageTokens {
  const sign = (query: string, position: Uint8Array) =>
    mac(Buffer.concat([Buffer.from(query, "utf8"), Buffer.from([0]), position])).subarray(0, MAC_BYTES);
  return {
    issue(query, { key, text = "", id }) {
      const fixed = Buffer.alloc(POSITION_BYTES);
      fixed.writeDoubleBE(key, 0);
      fixed.write(id.replaceAll("-", ""), KEY_BYTES, "hex");
      const position = Buffer.concat([fixed, Buffer.from(text, "utf8")]);
      return Buffer.concat([Buffer.from([TOKEN_VERSION]), sign(query, position), position]).toString(
        "base64url",
      );
    },
    read(query, token) {
      if (token === "") return undefined;
      const bytes = Buffer.from(token, "base64url");
      const position = bytes.subarray(1 + MAC_BYTES);
      const isWellFormed = bytes[0] === TOKEN_VERSION && position.length >= POSITION_BYTES;
      if (!isWellFormed || bytes.toString("base64url") !== token) throw pageTokenInvalid();
      if (!equalBytes(sign(query, position), bytes.subarray(1, 1 + MAC_BYTES))) throw pageTokenInvalid();
      const hex = position.toString("hex", KEY_BYTES, POSITION_BYTES);
      const text = position.toString("utf8", POSITION_BYTES);
      return {
        key: position.readDoubleBE(0),
        ...(text !== "" && { text }),
        id: [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
          "-",
        ),
      };
    },
  };
}

/** Bytes of stored text after which a page ends before it is full (`--page-bytes`). */
export const PAGE_BYTES = 4_194_304;

/** A row of a list, whose content is read only once it is on the page. */
export interface ListedRow<T> {
  readonly position: PagePosition;
  /**
   * Size of the content in JSON, in bytes: that of the stored text, or an estimate that is not
   * smaller.
   */
  readonly bytes: number;
  /** Returns undefined when the row was deleted since it was listed. */
  read(): T | undefined | Promise<T | undefined>;
}

/**
 * Returns the number of rows that fit on a page of `size` rows and `maxBytes`: at least one, if
 * there is one.
 */
export function rowsOnPage(
  rows: readonly { readonly bytes: number }[],
  size: number,
  maxBytes: number,
): number {
  let bytes = 0;
  for (const [index, row] of rows.slice(0, size).entries()) {
    bytes += row.bytes;
    if (index > 0 && bytes > maxBytes) return index;
  }
  return Math.min(rows.length, size);
}

/** Returns the number of rows on a page. */
export function pageSize(pagination: PaginationRequest | undefined): number {
  return pagination?.pageSize || DEFAULT_PAGE_SIZE;
}

/**
 * Returns the text that binds a token to a query: its parts in JSON with sorted keys, so that map
 * order does not matter. An empty part, such as a filter without conditions, is that of an absent one.
 */
export function queryText(operation: string, organizationId: string, ...parts: unknown[]): string {
  return JSON.stringify([operation, organizationId, ...parts.map(normalized)]);
}

function normalized(part: unknown): JsonValue {
  const value = sorted((part ?? null) as JsonValue);
  return isJsonObject(value) && Object.keys(value).length === 0 ? null : value;
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] ?? null)]),
  );
}
