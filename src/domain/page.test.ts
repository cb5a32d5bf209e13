import { createHmac } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { PaginationRequestSchema } from "#gen/service/v1/pagination_pb.js";
import { replay } from "../../test/harness/seed.ts";
import { equalBytes } from "../keys.ts";
import { createPageTokens, pageSize, queryText, rowsOnPage } from "./page.ts";

const mac = (key: string) => (bytes: Uint8Array) => createHmac("sha256", key).update(bytes).digest();
const tokens = createPageTokens(mac("one key"), equalBytes);

const QUERY = queryText("ListProjects", "0192d3c0-0000-7000-8000-000000000001", { search: "a" }, [
  "id",
  "asc",
]);
const POSITION = { key: 12.5, id: "0192d3c0-1111-7222-8333-444455556666" };
const token = tokens.issue(QUERY, POSITION);

const refused = expect.objectContaining({ reason: ErrorReason.PAGE_TOKEN_INVALID });
const refusing = (query: string, text: string) => {
  try {
    tokens.read(query, text);
    return `taken: ${text}`;
  } catch (error) {
    return error;
  }
};

describe("a page token", () => {
  test("gives back its position to the query that it was issued for", () => {
    expect(tokens.read(QUERY, token)).toEqual(POSITION);
  });

  test("carries any score and any id", () => {
    fc.assert(
      fc.property(fc.double(), fc.uuid(), (key, id) => {
        const read = tokens.read(QUERY, tokens.issue(QUERY, { key, id }));
        expect(Object.is(read?.key, key)).toBe(true);
        expect(read?.id).toBe(id);
      }),
      replay,
    );
  });

  test("carries any text with them, and none where there is none", () => {
    const text = fc.string({ unit: "binary", minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(fc.double({ noNaN: true }), text, fc.uuid(), (key, text, id) => {
        const issued = tokens.issue(QUERY, { key, text, id });
        expect(tokens.read(QUERY, issued)).toEqual({ key, text, id });
        expect(issued.length).toBeLessThan(500);
        expect(isRefused(issued.slice(0, -4))).toBe(true);
      }),
      replay,
    );
    expect(tokens.read(QUERY, token)).not.toHaveProperty("text");
  });

  test("is no position when it is empty", () => {
    expect(tokens.read(QUERY, "")).toBeUndefined();
  });

  test("stays short enough for the contract's bound whatever the query's length", () => {
    expect(tokens.issue(QUERY.repeat(1_000), POSITION)).toHaveLength(token.length);
    expect(token.length).toBeLessThan(100);
  });

  test.each([
    [
      "operation",
      queryText("ListRunners", "0192d3c0-0000-7000-8000-000000000001", { search: "a" }, ["id", "asc"]),
    ],
    [
      "organization",
      queryText("ListProjects", "0192d3c0-0000-7000-8000-000000000002", { search: "a" }, ["id", "asc"]),
    ],
    [
      "filter",
      queryText("ListProjects", "0192d3c0-0000-7000-8000-000000000001", { search: "b" }, ["id", "asc"]),
    ],
    [
      "order",
      queryText("ListProjects", "0192d3c0-0000-7000-8000-000000000001", { search: "a" }, ["id", "desc"]),
    ],
    ["empty text", ""],
  ])("is refused by a query that differs in its %s", (_, other) => {
    expect(refusing(other, token)).toEqual(refused);
  });

  test("is refused by a server with another key", () => {
    expect(() => createPageTokens(mac("another key"), equalBytes).read(QUERY, token)).toThrow(
      "not issued for this query",
    );
  });

  test("is refused with any one of its bytes changed to any other value", () => {
    const bytes = Buffer.from(token, "base64url");
    const accepted: string[] = [];
    for (const [place, byte] of bytes.entries()) {
      for (let other = 0; other < 256; other++) {
        if (other === byte) continue;
        const changed = Buffer.from(bytes);
        changed[place] = other;
        if (!isRefused(changed.toString("base64url"))) accepted.push(`byte ${place} as ${other}`);
      }
    }
    expect(bytes).toHaveLength(41);
    expect(accepted).toEqual([]);
  });

  test("is refused with any one of its characters changed to any other", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. ";
    const accepted: string[] = [];
    for (let place = 0; place < token.length; place++) {
      for (const other of alphabet) {
        const changed = token.slice(0, place) + other + token.slice(place + 1);
        if (changed !== token && !isRefused(changed)) accepted.push(changed);
      }
    }
    expect(accepted).toEqual([]);
  });

  test("is refused with bytes missing at its end or its beginning", () => {
    for (let length = 1; length < token.length; length++) {
      expect(refusing(QUERY, token.slice(0, length))).toEqual(refused);
      expect(refusing(QUERY, token.slice(-length))).toEqual(refused);
    }
  });

  test.each([
    ["a character more", `${token}A`],
    ["padding", `${token}=`],
    ["white space behind it", `${token}\n`],
    ["white space before it", ` ${token}`],
    ["itself behind it", token + token],
    ["a byte more", Buffer.concat([Buffer.from(token, "base64url"), Buffer.from([0])]).toString("base64url")],
  ])("is refused with %s", (_, longer) => {
    expect(refusing(QUERY, longer)).toEqual(refused);
  });

  test.each([["!"], ["\u0000"], ["token"], ["é".repeat(55)], ["=".repeat(55)], ["A".repeat(4_096)]])(
    "is refused when it is none: %j",
    (none) => {
      expect(refusing(QUERY, none)).toEqual(refused);
    },
  );
});

describe("the text of a query", () => {
  test("does not depend on the order of fields and map entries", () => {
    const one = { annotations: { team: "a", "z.z": "1", tier: "b" }, search: "x", nested: [{ b: 1, a: 2 }] };
    const other = {
      nested: [{ a: 2, b: 1 }],
      search: "x",
      annotations: { tier: "b", team: "a", "z.z": "1" },
    };
    expect(queryText("List", "o", one)).toBe(queryText("List", "o", other));
  });

  test("does not depend on it for any map", () => {
    const shuffled = fc
      .uniqueArray(fc.tuple(fc.string(), fc.string()), { selector: ([key]) => key })
      .chain((pairs) =>
        fc.tuple(fc.constant(pairs), fc.shuffledSubarray(pairs, { minLength: pairs.length })),
      );
    fc.assert(
      fc.property(shuffled, ([pairs, again]) => {
        expect(queryText("List", "o", Object.fromEntries(again))).toBe(
          queryText("List", "o", Object.fromEntries(pairs)),
        );
      }),
      replay,
    );
  });

  test("depends on the order of a list and on where one part ends", () => {
    const texts = [
      queryText("List", "o", ["a", "b"]),
      queryText("List", "o", ["b", "a"]),
      queryText("List", "o", "a", "b"),
      queryText("List", "o", "ab"),
      queryText("List", "oab"),
      queryText("Listo", "ab"),
    ];
    expect(new Set(texts).size).toBe(texts.length);
  });

  test("is the same for an absent part and for null", () => {
    expect(queryText("List", "o", undefined)).toBe(queryText("List", "o", null));
    expect(queryText("List", "o", {})).toBe(queryText("List", "o", null));
    expect(queryText("List", "o", [])).not.toBe(queryText("List", "o", null));
    expect(queryText("List", "o", { a: {} })).not.toBe(queryText("List", "o", null));
  });

  test("keeps names apart that objects have of their own", () => {
    const filter = (text: string) => JSON.parse(text) as unknown;
    expect(queryText("List", "o", filter('{"__proto__": "a"}'))).not.toBe(
      queryText("List", "o", filter('{"__proto__": "b"}')),
    );
  });
});

describe("the size of a page", () => {
  test.each([
    [0, 25],
    [1, 1],
    [100, 100],
  ])("asked as %i is %i", (requested, size) => {
    expect(pageSize(create(PaginationRequestSchema, { pageSize: requested }))).toBe(size);
  });

  test("is 25 when nothing is asked", () => {
    expect(pageSize(undefined)).toBe(25);
  });
});

function isRefused(text: string): boolean {
  return (refusing(QUERY, text) as { reason?: ErrorReason }).reason === ErrorReason.PAGE_TOKEN_INVALID;
}

describe("the rows of a page", () => {
  const rows = (...bytes: number[]) => bytes.map((each) => ({ bytes: each }));

  test.each([
    ["none where there are none", [], 3, 0],
    ["no more than asked", [1, 1, 1, 1], 3, 3],
    ["all of one byte less than fits", [4, 5], 3, 2],
    ["all of as many bytes as fit", [5, 5], 3, 2],
    ["those before the byte that is too much", [5, 6], 3, 1],
    ["one that is too large by itself", [11, 1], 3, 1],
    ["not a large one behind a small one", [1, 11, 1], 3, 1],
  ])("are %s", (_, bytes, size, expected) => {
    expect(rowsOnPage(rows(...bytes), size, 10)).toBe(expected);
  });
});
