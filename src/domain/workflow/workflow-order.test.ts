import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import {
  ListWorkflowsRequest_SortField as Field,
  ListWorkflowsRequest_SortSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { workflowOrder } from "./workflow-order.ts";

test.each([
  [Field.UNSPECIFIED, "id", "asc"],
  [Field.NAME, "name", "asc"],
  [Field.RECENTLY_COMPLETED, "completion", "desc"],
] as const)("the order by %s is by %s, %s unless the request says otherwise", (field, by, usual) => {
  const order = (order: SortOrder) =>
    workflowOrder(create(ListWorkflowsRequest_SortSchema, { field, order }));
  expect(order(SortOrder.UNSPECIFIED)).toEqual({ field: by, direction: usual });
  expect(order(SortOrder.ASC)).toEqual({ field: by, direction: "asc" });
  expect(order(SortOrder.DESC)).toEqual({ field: by, direction: "desc" });
});

test("without a sort the order is by id", () => {
  expect(workflowOrder(undefined)).toEqual({ field: "id", direction: "asc" });
});
