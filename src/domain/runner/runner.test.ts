import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { RunnerPhase, RunnerSpecSchema } from "#gen/service/v1/runner_pb.js";
import {
  newLocalConfiguration,
  newRunner,
  requireRunnerConnectable,
  requireRunnerDeletable,
} from "./runner.ts";

const NOW = Date.UTC(2026, 0, 1);
const origin = {
  id: "019b76da-a800-7000-8000-000000000001",
  creator: create(SubjectSchema, { id: "019b76da-a800-7000-8000-000000000002", principal: Principal.USER }),
  now: NOW,
};

describe("a new runner", () => {
  test("is remote, created and wanted active when nothing is said", () => {
    const at = timestampFromMs(NOW);
    expect(newRunner({ name: "north", kind: RunnerKind.UNSPECIFIED }, origin)).toMatchObject({
      runnerId: origin.id,
      name: "north",
      kind: RunnerKind.REMOTE,
      creator: origin.creator,
      createdAt: at,
      updatedAt: at,
      spec: { desiredPhase: RunnerPhase.ACTIVE },
      status: { updatedAt: at, phase: RunnerPhase.CREATED },
    });
  });

  test("is of the kind and wanted in the phase that are given", () => {
    const spec = create(RunnerSpecSchema, { desiredPhase: RunnerPhase.INACTIVE });
    const runner = newRunner({ name: "desk", kind: RunnerKind.LOCAL, spec }, origin);
    expect(runner).toMatchObject({ kind: RunnerKind.LOCAL, spec: { desiredPhase: RunnerPhase.INACTIVE } });
  });

  test.each([RunnerPhase.CREATED, RunnerPhase.DELETING, RunnerPhase.DELETED, RunnerPhase.DEGRADED])(
    "cannot be wanted in the phase %s, as after an update",
    (desiredPhase) => {
      const spec = create(RunnerSpecSchema, { desiredPhase });
      expect(() => newRunner({ name: "north", kind: RunnerKind.REMOTE, spec }, origin)).toThrow(
        expect.objectContaining({
          reason: ErrorReason.VALUE_UNUSABLE,
          metadata: { field: "spec.desiredPhase" },
        }),
      );
    },
  );

  test("is not of the kind that the system makes", () => {
    expect(() => newRunner({ name: "mine", kind: RunnerKind.LOCAL_CONFIGURATION }, origin)).toThrow(
      expect.objectContaining({ reason: ErrorReason.VALUE_UNUSABLE }),
    );
  });
});

describe("the runner that represents local runners", () => {
  const local = newLocalConfiguration({ id: origin.id, now: NOW });

  test("has a name and no creator", () => {
    expect(local).toMatchObject({ name: "Local runners", kind: RunnerKind.LOCAL_CONFIGURATION });
    expect(local.creator).toBeUndefined();
  });

  test("gets no exchange token and is not deleted, and other runners do and are", () => {
    const remote = newRunner({ name: "north", kind: RunnerKind.REMOTE }, origin);
    expect(() => requireRunnerConnectable(local)).toThrow(
      expect.objectContaining({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field: "runnerId" } }),
    );
    expect(() => requireRunnerDeletable(local)).toThrow(
      expect.objectContaining({ reason: ErrorReason.IN_USE }),
    );
    expect(() => requireRunnerConnectable(remote)).not.toThrow();
    expect(() => requireRunnerDeletable(remote)).not.toThrow();
  });
});
