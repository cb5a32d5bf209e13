import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { ResourceChangeSchema } from "#gen/service/v1/resource_service_pb.js";
import { CHANGED_BYTES, requireChangedFit, requireDistinctPlaceholders } from "./resource-changes.ts";

const changes = (...placeholders: string[]) =>
  placeholders.map((placeholderId) => create(ResourceChangeSchema, { placeholderId }));

test("placeholders of changes differ, and several changes may have none", () => {
  expect(() => requireDistinctPlaceholders(changes("a", "", "b", ""))).not.toThrow();
  expect(() => requireDistinctPlaceholders(changes("a", "b", "a"))).toThrow(
    "changes[2].placeholderId is that of an earlier change",
  );
});

test("the resources that changes answer with have a size together", () => {
  for (const bytes of [0, CHANGED_BYTES - 1, CHANGED_BYTES])
    expect(() => requireChangedFit(bytes)).not.toThrow();
  expect(() => requireChangedFit(CHANGED_BYTES + 1)).toThrow("make fewer changes at a time");
});
