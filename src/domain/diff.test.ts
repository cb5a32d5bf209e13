import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../test/harness/seed.ts";
import { diffJson } from "./diff.ts";

const diff = (before: unknown, after: unknown) => diffJson(JSON.stringify(before), JSON.stringify(after));

describe("the difference of two JSON texts", () => {
  test("is empty for the same values, whatever the order of their fields", () => {
    expect(diff({ a: 1, b: { c: [1, 2], d: null } }, { b: { d: null, c: [1, 2] }, a: 1 })).toEqual({});
  });

  test("names each changed value by its path, with what it was and is", () => {
    const before = { metadata: { name: "a", creator: "c" }, phase: "ACTIVE", order: 1, on: true };
    const after = { metadata: { name: "b", creator: "c" }, phase: "DELETED", order: 0, on: false };
    expect(diff(before, after)).toEqual({
      "metadata.name": ["a", "b"],
      phase: ["ACTIVE", "DELETED"],
      order: [1, 0],
      on: [true, false],
    });
  });

  test("has null for what was or is absent", () => {
    expect(diff({ a: { x: "1" } }, { a: { y: "2" } })).toEqual({ "a.x": ["1", null], "a.y": [null, "2"] });
  });

  test("takes what is null and what is absent for the same", () => {
    expect(diff({ a: null }, {})).toEqual({});
  });

  test("tells a list as a whole", () => {
    expect(diff({ a: { list: [{ id: 1 }, { id: 2 }] } }, { a: { list: [{ id: 1 }] } })).toEqual({
      "a.list": [[{ id: 1 }, { id: 2 }], [{ id: 1 }]],
    });
  });

  test("tells a list that only changed its order", () => {
    expect(diff({ list: [1, 2] }, { list: [2, 1] })).toEqual({
      list: [
        [1, 2],
        [2, 1],
      ],
    });
  });

  test("tells an object that came, went or changed its kind as a whole", () => {
    expect(diff({ came: null, went: { a: 1 }, kind: { a: 1 } }, { came: {}, kind: [1] })).toEqual({
      came: [null, {}],
      went: [{ a: 1 }, null],
      kind: [{ a: 1 }, [1]],
    });
  });

  test("of a creation has nothing before, of a removal nothing after", () => {
    const body = JSON.stringify({ id: "1", metadata: { name: "a" } });
    expect(diffJson(undefined, body)).toEqual({ id: [null, "1"], metadata: [null, { name: "a" }] });
    expect(diffJson(body, undefined)).toEqual({ id: ["1", null], metadata: [{ name: "a" }, null] });
    expect(diffJson(undefined, undefined)).toEqual({});
  });

  test.each(["constructor", "toString", "hasOwnProperty", "__proto__"])(
    "finds no value where none is, though every object has a %s",
    (key) => {
      const annotated = `{"annotations": {${JSON.stringify(key)}: "x"}}`;
      const plain = `{"annotations": {}}`;
      expect(diffJson(plain, annotated)).toEqual({ [`annotations.${key}`]: [null, "x"] });
      expect(diffJson(annotated, plain)).toEqual({ [`annotations.${key}`]: ["x", null] });
    },
  );

  test("of top-level fields is kept under any name", () => {
    const changes = diffJson("{}", `{"__proto__": "x", "a": 1}`);
    expect(JSON.parse(JSON.stringify(changes))).toEqual(
      JSON.parse(`{"__proto__": [null, "x"], "a": [null, 1]}`),
    );
  });

  test("backwards is the same with both sides exchanged", () => {
    const key = fc.string({ maxLength: 2 }).filter((text) => text !== "" && !text.includes("."));
    const nested = fc.dictionary(key, fc.jsonValue({ maxDepth: 0 }), { maxKeys: 3 });
    const value = fc.dictionary(key, fc.oneof(nested, fc.jsonValue({ maxDepth: 0 })), { maxKeys: 5 });
    fc.assert(
      fc.property(value, value, (one, other) => {
        const back = Object.entries(diff(other, one)).map(([path, [before, after]]) => [
          path,
          [after, before],
        ]);
        expect(new Map(back as [string, unknown][])).toEqual(new Map(Object.entries(diff(one, other))));
      }),
      replay,
    );
  });
});
