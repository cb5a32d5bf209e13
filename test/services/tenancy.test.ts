import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type DomainError, notFound } from "../../src/domain/error.ts";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { findOwnPersonalToken } from "../../src/store/identity/personal-token.ts";
import { findTokens } from "../../src/store/identity/token.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { classEntry, type Services, servicesOf } from "./services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;
let stranger: Services;
let strangerCaller: Caller;
let theirs: { projectId: string; runnerId: string; classId: string; environmentId: string; tokenId: string };

beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  strangerCaller = await testStore.createOrganization("island");
  own = servicesOf(testStore, caller);
  stranger = servicesOf(testStore, strangerCaller);
  const projectId = await own.project("ship");
  const { runnerId, classId } = await own.runnerWithClass("north");
  const environmentId = await own.use(projectId);
  const [token] = await findTokens(testStore.store.reader, caller, "personal", caller.subject.id);
  theirs = { projectId, runnerId, classId, environmentId, tokenId: token?.id ?? "" };
});
afterAll(() => testStore.close());

describe("another organization", () => {
  const operations: [string, string, (id: typeof theirs) => Promise<unknown>][] = [
    ["GetEnvironment", "environment", (id) => stranger.environments.getEnvironment(id)],
    ["StartEnvironment", "environment", (id) => stranger.environments.startEnvironment(id)],
    ["StopEnvironment", "environment", (id) => stranger.environments.stopEnvironment(id)],
    ["ArchiveEnvironment", "environment", (id) => stranger.environments.archiveEnvironment(id)],
    ["UnarchiveEnvironment", "environment", (id) => stranger.environments.unarchiveEnvironment(id)],
    [
      "UpdateEnvironment",
      "environment",
      (id) => stranger.environments.updateEnvironment({ ...id, metadata: { name: "Mine" } }),
    ],
    [
      "DeleteEnvironment",
      "environment",
      (id) => stranger.environments.deleteEnvironment({ ...id, force: true }),
    ],
    [
      "CreateEnvironment",
      "environment class",
      ({ classId }) => stranger.environments.createEnvironment({ spec: { machine: { class: classId } } }),
    ],
    [
      "CreateEnvironmentFromProject",
      "project",
      (id) => stranger.environments.createEnvironmentFromProject(id),
    ],
    ["GetRunner", "runner", (id) => stranger.runners.getRunner(id)],
    ["CreateRunnerToken", "runner", (id) => stranger.runners.createRunnerToken(id)],
    ["UpdateRunner", "runner", (id) => stranger.runners.updateRunner({ ...id, name: "Mine" })],
    [
      "ParseContextURL",
      "runner",
      (id) => stranger.runners.parseContextURL({ ...id, contextUrl: "https://git.example.org/o/r" }),
    ],
    [
      "CheckRepositoryAccess",
      "runner",
      (id) => stranger.runners.checkRepositoryAccess({ ...id, repositoryUrl: "https://git.example.org/o/r" }),
    ],
    ["DeleteRunner", "runner", (id) => stranger.runners.deleteRunner({ ...id, force: true })],
    [
      "CreateEnvironmentClass",
      "runner",
      ({ runnerId }) =>
        stranger.configuration.createEnvironmentClass({ runnerId, displayName: "Mine", description: "not" }),
    ],
    [
      "GetEnvironmentClass",
      "environment class",
      ({ classId }) => stranger.configuration.getEnvironmentClass({ environmentClassId: classId }),
    ],
    [
      "UpdateEnvironmentClass",
      "environment class",
      ({ classId }) =>
        stranger.configuration.updateEnvironmentClass({ environmentClassId: classId, enabled: false }),
    ],
    [
      "UpdateProjectEnvironmentClasses",
      "environment class",
      async ({ classId }) =>
        stranger.projects.updateProjectEnvironmentClasses({
          projectId: await stranger.project("raft"),
          projectEnvironmentClasses: [classEntry(classId)],
        }),
    ],
    [
      "DeletePersonalAccessToken",
      "personal access token",
      ({ tokenId }) => stranger.users.deletePersonalAccessToken({ personalAccessTokenId: tokenId }),
    ],
  ];

  test.each(operations)(
    "gets from %s for what it does not own the answer for what is absent",
    async (_, resource, call) => {
      const before = await testStore.history(caller);
      const expected = notFound(resource);
      const absent = Object.fromEntries(
        Object.keys(theirs).map((name) => [name, testStore.newId()]),
      ) as typeof theirs;
      for (const id of [theirs, absent]) {
        const error = await call(id).then(
          () => undefined,
          (reason: DomainError) => reason,
        );
        expect(error).toMatchObject({ reason: ErrorReason.NOT_FOUND, metadata: expected.metadata });
        expect(error?.message).toBe(expected.message);
      }
      expect(await testStore.history(caller)).toEqual(before);
    },
  );

  test("sees in its lists only what is its own", async () => {
    const { runnerId, environmentId } = theirs;
    expect((await stranger.environments.listEnvironments({})).environments).toEqual([]);
    const filtered = await stranger.environments.listEnvironments({
      filter: { projectIds: [theirs.projectId], search: environmentId },
      count: { include: true },
    });
    expect(filtered).toMatchObject({ environments: [], count: { value: 0 } });
    expect((await stranger.runners.listRunners({})).runners.map(({ name }) => name)).toEqual([
      "Local runners",
    ]);
    const { environmentClasses } = await stranger.configuration.listEnvironmentClasses({
      filter: { runnerIds: [runnerId] },
    });
    expect(environmentClasses).toEqual([]);
    const { personalAccessTokens } = await stranger.users.listPersonalAccessTokens({});
    expect(personalAccessTokens.map(({ userId }) => userId)).toEqual([strangerCaller.subject.id]);
  });

  test("cannot use a page token of ours", async () => {
    await own.use(theirs.projectId);
    const { pagination } = await own.environments.listEnvironments({ pagination: { pageSize: 1 } });
    const token = pagination?.nextToken ?? "";
    await expect(stranger.environments.listEnvironments({ pagination: { token } })).rejects.toMatchObject({
      reason: ErrorReason.PAGE_TOKEN_INVALID,
    });
  });

  test("does not find our token even under our user's id", async () => {
    const { reader } = testStore.store;
    expect(
      await findOwnPersonalToken(reader, strangerCaller, caller.subject.id, theirs.tokenId),
    ).toBeUndefined();
    expect(await findOwnPersonalToken(reader, caller, caller.subject.id, theirs.tokenId)).toBeDefined();
  });
});
