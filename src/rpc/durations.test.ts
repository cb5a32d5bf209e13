import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  CreateProjectRequestSchema,
  CreateProjectsRequestSchema,
  ListProjectsRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { CreateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import { requireDurations } from "./durations.ts";

const withTimeout = (seconds: bigint, nanos: number) =>
  create(CreateProjectRequestSchema, { prebuildConfiguration: { timeout: { seconds, nanos } } });

describe("the durations of a message", () => {
  test.each([
    [0n, 0],
    [1n, 999_999_999],
    [-1n, -999_999_999],
    [0n, -1],
    [315_576_000_000n, 0],
  ])("may be %s s and %s ns", (seconds, nanos) => {
    expect(() => requireDurations(CreateProjectRequestSchema, withTimeout(seconds, nanos))).not.toThrow();
  });

  test.each([
    [1n, -1],
    [-1n, 1],
    [0n, 1_000_000_000],
    [1n, -2_147_483_648],
    [315_576_000_001n, 0],
    [-(2n ** 63n), 0],
  ])("may not be %s s and %s ns", (seconds, nanos) => {
    expect(() => requireDurations(CreateProjectRequestSchema, withTimeout(seconds, nanos))).toThrow(
      expect.objectContaining({
        reason: ErrorReason.VALUE_UNUSABLE,
        metadata: { field: "prebuildConfiguration.timeout" },
      }),
    );
  });

  test("are found at any depth, and need not be there", () => {
    const workflow = create(CreateWorkflowRequestSchema, {
      action: { limits: { perExecution: { maxTime: { seconds: 1n, nanos: -1 } } } },
    });
    expect(() => requireDurations(CreateWorkflowRequestSchema, workflow)).toThrow(
      /^action\.limits\.perExecution\.maxTime is no duration/,
    );
    for (const schema of [CreateWorkflowRequestSchema, ListProjectsRequestSchema]) {
      expect(() => requireDurations(schema, create(schema))).not.toThrow();
    }
  });

  test("are left alone in elements that are checked one by one", () => {
    const projects = create(CreateProjectsRequestSchema, { projects: [withTimeout(1n, -1)] });
    expect(() => requireDurations(CreateProjectsRequestSchema, projects)).not.toThrow();
  });
});
