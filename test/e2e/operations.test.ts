import { fromJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { createCheck } from "../../src/rpc/check.ts";
import { everyOperation } from "./every-operation.ts";
import { idFields, withId } from "./id-fields.ts";
import { nowhere } from "./world.ts";

const ID = "0190c0de-0000-7000-8000-000000000000";
const check = createCheck();

/** The list is what the tests of every operation go by: unauthenticated, cross-organization, golden. */
describe.each(everyOperation())("the entry of %s", (_, { method: { input }, ids, request }) => {
  const example = request(nowhere());

  test("has an example that is valid by the rules of the contract", () => {
    expect(() => check(input, fromJson(input, example as never))).not.toThrow();
  });

  test("names every field of the request that is an id", () => {
    expect(Object.keys(ids).toSorted()).toEqual(idFields(input).toSorted());
  });

  test("has an example that takes another id in each of them", () => {
    const changed = Object.keys(ids).map((path) => withId(input, example, path, ID));
    expect(changed.filter((each) => !JSON.stringify(each).includes(ID))).toEqual([]);
    expect(changed.map((each) => fromJson(input, each as never).$typeName)).toEqual(
      changed.map(() => input.typeName),
    );
  });
});
