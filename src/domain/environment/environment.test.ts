import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentPhase, EnvironmentSpecSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  deletedEnvironment,
  environmentSearchText,
  newEnvironment,
  requireArchivable,
  startedEnvironment,
  stoppedEnvironment,
  wasNeverAssigned,
} from "./environment.ts";

const NOW = Date.UTC(2026, 0, 1);

function environmentOf(
  spec?: MessageInitShape<typeof EnvironmentSpecSchema>,
  texts: { name?: string; sessionId?: string } = {},
) {
  return newEnvironment(
    {
      spec: spec && create(EnvironmentSpecSchema, spec),
      name: "",
      annotations: {},
      sessionId: "",
      projectId: "",
      runnerId: "",
      ...texts,
    },
    {
      id: "019b76da-a800-7000-8000-000000000001",
      organizationId: "019b76da-a800-7000-8000-000000000002",
      creator: create(SubjectSchema, {
        id: "019b76da-a800-7000-8000-000000000003",
        principal: Principal.USER,
      }),
      now: NOW,
    },
  );
}

describe("a new environment", () => {
  test.each([
    [EnvironmentPhase.UNSPECIFIED, EnvironmentPhase.RUNNING],
    [EnvironmentPhase.RUNNING, EnvironmentPhase.RUNNING],
    [EnvironmentPhase.STOPPED, EnvironmentPhase.STOPPED],
  ])("asked for phase %d is wanted in phase %d", (requested, wanted) => {
    expect(environmentOf({ desiredPhase: requested }).spec?.desiredPhase).toBe(wanted);
  });

  test.each([
    EnvironmentPhase.CREATING,
    EnvironmentPhase.STARTING,
    EnvironmentPhase.UPDATING,
    EnvironmentPhase.STOPPING,
    EnvironmentPhase.DELETING,
    EnvironmentPhase.DELETED,
  ])("is refused when it is asked for phase %d", (desiredPhase) => {
    expect(() => environmentOf({ desiredPhase })).toThrow(
      expect.objectContaining({
        reason: ErrorReason.VALUE_UNUSABLE,
        metadata: { field: "spec.desiredPhase" },
      }),
    );
  });

  test("begins at its first versions, whatever the request says", () => {
    const { spec, status } = environmentOf({ specVersion: 99n });
    expect(spec?.specVersion).toBe(1n);
    expect(status).toMatchObject({ statusVersion: 1n, phase: EnvironmentPhase.CREATING });
  });

  test("leaves the request's message as it was", () => {
    const spec = create(EnvironmentSpecSchema, { specVersion: 99n });
    environmentOf(spec);
    expect(spec.specVersion).toBe(99n);
  });

  test("remembers the context URL of its first source, and no other", () => {
    const url = "https://git.example.org/team/ship/pull/7";
    const contextUrl = { spec: { case: "contextUrl", value: { url } } } as const;
    const git = {
      spec: { case: "git", value: { remoteUri: "https://git.example.org/team/ship.git" } },
    } as const;
    const originOf = (...specs: (typeof contextUrl | typeof git)[]) =>
      environmentOf({ content: { initializer: { specs } } }).metadata?.originalContextUrl;
    expect(originOf(contextUrl, git)).toBe(url);
    expect(originOf(git, contextUrl)).toBe("");
    expect(originOf()).toBe("");
  });

  test("was started by its creation unless it was created stopped", () => {
    const startOf = (desiredPhase: EnvironmentPhase) =>
      environmentOf({ desiredPhase }).metadata?.lastStartedAt;
    expect(startOf(EnvironmentPhase.UNSPECIFIED)).toEqual(timestampFromMs(NOW));
    expect(startOf(EnvironmentPhase.RUNNING)).toEqual(timestampFromMs(NOW));
    expect(startOf(EnvironmentPhase.STOPPED)).toBeUndefined();
  });

  test("keeps the session it was given", () => {
    const { metadata } = environmentOf({}, { sessionId: "019b76da-a800-7000-8000-00000000000a" });
    expect(metadata?.sessionId).toBe("019b76da-a800-7000-8000-00000000000a");
    expect(metadata?.createdAt).toEqual(timestampFromMs(NOW));
  });

  test("is untouched until its status changes", () => {
    const environment = environmentOf();
    expect(wasNeverAssigned(environment)).toBe(true);
    if (environment.status) environment.status.statusVersion += 1n;
    expect(wasNeverAssigned(environment)).toBe(false);
  });

  test("is searched by folded name and id, one a line", () => {
    expect(environmentSearchText(environmentOf({}, { name: "Hafen STRASSE" }))).toBe(
      "hafen strasse\n019b76da-a800-7000-8000-000000000001",
    );
  });
});

describe("the wanted phase", () => {
  test("a start keeps the version of a spec that asks for it already", () => {
    const started = startedEnvironment(environmentOf(), NOW + 5);
    expect(started.spec?.specVersion).toBe(1n);
    expect(started.metadata?.lastStartedAt).toEqual(timestampFromMs(NOW + 5));
  });

  test("a change raises the spec's version and leaves the status and the present message alone", () => {
    const present = environmentOf();
    const stopped = stoppedEnvironment(present);
    expect(stopped?.spec).toMatchObject({ desiredPhase: EnvironmentPhase.STOPPED, specVersion: 2n });
    expect(stopped?.status).toEqual(present.status);
    expect(present.spec).toMatchObject({ desiredPhase: EnvironmentPhase.RUNNING, specVersion: 1n });
  });

  test("to stop or delete a second time changes nothing", () => {
    const stopped = stoppedEnvironment(environmentOf());
    expect(stopped && stoppedEnvironment(stopped)).toBeUndefined();
    const deleted = deletedEnvironment(environmentOf());
    expect(deleted && deletedEnvironment(deleted)).toBeUndefined();
  });

  test("what is wanted deleted is neither started nor stopped any more", () => {
    const deleted = deletedEnvironment(environmentOf()) ?? environmentOf();
    const refusal = expect.objectContaining({ reason: ErrorReason.PENDING_DELETION });
    expect(() => startedEnvironment(deleted, NOW)).toThrow(refusal);
    expect(() => stoppedEnvironment(deleted)).toThrow(refusal);
  });
});

describe("the archive", () => {
  const stopped = { desiredPhase: EnvironmentPhase.STOPPED };

  test("takes what is stopped, and not what an action goes on in after an approval", () => {
    const workflowActionId = "019b76da-a800-7000-8000-00000000000b";
    const refusal = expect.objectContaining({ reason: ErrorReason.PHASE_UNSUITABLE });
    expect(() => requireArchivable(environmentOf(stopped))).not.toThrow();
    expect(() => requireArchivable(environmentOf({ ...stopped, workflowActionId }))).toThrow(refusal);
    expect(() => requireArchivable(environmentOf())).toThrow(refusal);
  });

  test("takes nothing whose machine has not stopped yet", () => {
    const environment = environmentOf(stopped);
    if (!environment.status) throw new Error("an environment has a status");
    Object.assign(environment.status, { phase: EnvironmentPhase.STOPPING, statusVersion: 2n });
    expect(() => requireArchivable(environment)).toThrow(
      expect.objectContaining({ metadata: expect.objectContaining({ phase: "STOPPING" }) }),
    );
    environment.status.phase = EnvironmentPhase.STOPPED;
    expect(() => requireArchivable(environment)).not.toThrow();
  });
});
