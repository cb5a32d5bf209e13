import { expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { requireStorageQuota } from "./storage-quota.ts";

test("a write is refused when it goes past the quota, and tells the figures", () => {
  for (const after of [99, 100]) expect(() => requireStorageQuota(10, after, 100)).not.toThrow();
  expect(() => requireStorageQuota(10, 101, 100)).toThrow(
    expect.objectContaining({
      reason: ErrorReason.STORAGE_QUOTA_EXCEEDED,
      message: expect.stringMatching(
        /stores 10 bytes, would store 101 and may store 100: delete .*--organization-quota$/,
      ),
      metadata: { used_bytes: "10", needed_bytes: "101", limit_bytes: "100" },
    }),
  );
});

test("past the quota a write may keep the size, or shrink it", () => {
  for (const after of [499, 500]) expect(() => requireStorageQuota(500, after, 100)).not.toThrow();
  expect(() => requireStorageQuota(500, 501, 100)).toThrow();
});
