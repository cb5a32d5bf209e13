import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { ResourceChangeSchema } from "#gen/service/v1/resource_service_pb.js";
import { requireDistinctPlaceholders } from "./resource-changes.ts";

const changes = (...placeholders: string[]) =>
  placeholders.map((placeholderId) => create(ResourceChangeSchema, { placeholderId }));

test("placeholders of changes differ, and several changes may have none", () => {
  expect(() => requireDistinctPlaceholders(changes("a", "", "b", ""))).not.toThrow();
  expect(() => requireDistinctPlaceholders(changes("a", "b", "a"))).toThrow(
    "changes[2].placeholderId is that of an earlier change",
  );
});
