import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  ListEnvironmentsRequest_SortSchema,
  ListEnvironmentsRequest_SortField as SortField,
} from "#gen/service/v1/environment_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { environmentOrder } from "./environment-order.ts";

describe("the order of an environment list", () => {
  test.each([
    [SortField.UNSPECIFIED, SortOrder.UNSPECIFIED, "id", "asc"],
    [SortField.ID, SortOrder.DESC, "id", "desc"],
    [SortField.ARCHIVED_AT, SortOrder.UNSPECIFIED, "archivedAt", "asc"],
    [SortField.ARCHIVED_AT, SortOrder.ASC, "archivedAt", "asc"],
    [SortField.UNSPECIFIED, SortOrder.DESC, "id", "desc"],
  ])("for field %d and order %d is %s %s", (field, order, expectedField, direction) => {
    const sort = create(ListEnvironmentsRequest_SortSchema, { field, order });
    expect(environmentOrder(sort)).toEqual({ field: expectedField, direction });
  });

  test("is by id ascending when nothing is asked", () => {
    expect(environmentOrder(undefined)).toEqual({ field: "id", direction: "asc" });
  });
});
