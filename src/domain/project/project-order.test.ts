import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SortOrder, SortSchema } from "#gen/service/v1/pagination_pb.js";
import { projectOrder } from "./project-order.ts";

const requested = (field: string, order: SortOrder) => projectOrder(create(SortSchema, { field, order }));

describe("the order of a project list", () => {
  test("is by popularity, highest first, when nothing is asked", () => {
    expect(projectOrder(undefined)).toEqual({ field: "popularity", direction: "desc" });
  });

  test.each([
    ["", SortOrder.UNSPECIFIED, "popularity", "desc"],
    ["", SortOrder.ASC, "popularity", "asc"],
    ["", SortOrder.DESC, "popularity", "desc"],
    ["popularity", SortOrder.UNSPECIFIED, "popularity", "desc"],
    ["popularity", SortOrder.ASC, "popularity", "asc"],
    ["popularity", SortOrder.DESC, "popularity", "desc"],
    ["id", SortOrder.UNSPECIFIED, "id", "asc"],
    ["id", SortOrder.ASC, "id", "asc"],
    ["id", SortOrder.DESC, "id", "desc"],
  ])("by %j in order %i is %s %s", (field, order, by, direction) => {
    expect(requested(field, order)).toEqual({ field: by, direction });
  });

  test.each(["name", "ID", "Popularity", " id", "metadata.name", "constructor"])(
    "by %j is refused, and the two that can be asked are named",
    (field) => {
      expect(() => requested(field, SortOrder.ASC)).toThrow(
        expect.objectContaining({
          reason: ErrorReason.VALUE_UNUSABLE,
          metadata: { field: "sort.field" },
          message: expect.stringMatching(/"id" and "popularity"/),
        }),
      );
    },
  );
});
