import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { OrganizationService as Organizations } from "#gen/service/v1/organization_service_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
});
afterEach(() => testStore.close());

const find = async (filter: object, as = own) =>
  (await as.configuration.listEnvironmentClasses({ filter })).environmentClasses.map(({ id }) => id);

describe("environment classes", () => {
  test("are enabled when they are created, with their settings in the order given", async () => {
    const { runner } = await own.runners.createRunner({ name: "north" });
    const runnerId = runner?.runnerId ?? "";
    const configuration = [
      { key: "size", value: "large" },
      { key: "disk", value: "20" },
    ];
    const { id } = await own.configuration.createEnvironmentClass({
      runnerId,
      displayName: "Large",
      description: "for builds",
      configuration,
    });
    const { environmentClass } = await own.configuration.getEnvironmentClass({ environmentClassId: id });
    expect(environmentClass).toMatchObject({
      id,
      runnerId,
      displayName: "Large",
      description: "for builds",
      enabled: true,
      configuration,
    });
  });

  test("belong to a runner of the organization that is not the one for local runners", async () => {
    const { runners } = await own.runners.listRunners({
      filter: { kinds: [RunnerKind.LOCAL_CONFIGURATION] },
    });
    const add = (runnerId: string) =>
      own.configuration.createEnvironmentClass({ runnerId, displayName: "Large", description: "for builds" });
    await expect(add(runners[0]?.runnerId ?? "")).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: "runnerId" },
    });
    await expect(add(testStore.newId())).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  });

  test("an update replaces what is present, and one that changes nothing records nothing", async () => {
    const { classId } = await own.runnerWithClass("north");
    await own.configuration.updateEnvironmentClass({ environmentClassId: classId, displayName: "Larger" });
    const { environmentClass } = await own.configuration.getEnvironmentClass({ environmentClassId: classId });
    expect(environmentClass).toMatchObject({
      displayName: "Larger",
      description: "for tests",
      enabled: true,
    });
    const before = await testStore.history(caller);
    await own.configuration.updateEnvironmentClass({ environmentClassId: classId, displayName: "Larger" });
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("are found by runner, runner kind and whether they take environments", async () => {
    const north = await own.runnerWithClass("north");
    const south = await own.runnerWithClass("south");
    const { runner } = await own.runners.createRunner({ name: "desk", kind: RunnerKind.LOCAL });
    const { id: localClassId } = await own.configuration.createEnvironmentClass({
      runnerId: runner?.runnerId ?? "",
      displayName: "Desk",
      description: "for tests",
    });
    await own.configuration.updateEnvironmentClass({ environmentClassId: south.classId, enabled: false });
    expect(await find({})).toEqual([north.classId, south.classId, localClassId]);
    expect(await find({ runnerIds: [south.runnerId] })).toEqual([south.classId]);
    expect(await find({ runnerKinds: [RunnerKind.REMOTE] })).toEqual([north.classId, south.classId]);
    expect(await find({ enabled: false })).toEqual([south.classId]);
    expect(await find({ canCreateEnvironments: true })).toEqual([north.classId, localClassId]);
    expect(await find({ canCreateEnvironments: false })).toEqual([south.classId]);
    expect(await find({ enabled: true, canCreateEnvironments: false })).toEqual([]);
  });

  test("of local runners take no environments where a policy refuses those", async () => {
    const remote = await own.runnerWithClass("north");
    const { runner } = await own.runners.createRunner({ name: "desk", kind: RunnerKind.LOCAL });
    const { id: localId } = await own.configuration.createEnvironmentClass({
      runnerId: runner?.runnerId ?? "",
      displayName: "Desk",
      description: "for tests",
    });
    const { organizationId } = caller;
    await operationsOf(
      Organizations,
      new OrganizationService(testStore.deps),
      caller,
    ).updateOrganizationPolicies({ organizationId, allowLocalRunners: false });
    const start = (id: string) =>
      own.environments.createEnvironment({ spec: { machine: { class: id } }, name: "here" });
    await expect(start(localId)).rejects.toMatchObject({ reason: ErrorReason.POLICY_DENIED });
    await start(remote.classId);
    expect(await find({ canCreateEnvironments: true })).toEqual([remote.classId]);
    expect(await find({ canCreateEnvironments: false })).toEqual([localId]);
    expect(await find({ enabled: true })).toEqual([remote.classId, localId]);
  });

  test("take no environments of a runner, which creates none", async () => {
    const { runnerId, classId } = await own.runnerWithClass("north");
    const subject = create(SubjectSchema, { id: runnerId, principal: Principal.RUNNER });
    const runner = servicesOf(testStore, { ...caller, role: "runner", subject });
    expect(await find({ canCreateEnvironments: true }, runner)).toEqual([]);
    expect(await find({ canCreateEnvironments: false }, runner)).toEqual([classId]);
  });

  test("come a page at a time by creation", async () => {
    const ids: string[] = [];
    for (const name of ["one", "two", "three"]) ids.push((await own.runnerWithClass(name)).classId);
    const first = await own.configuration.listEnvironmentClasses({ pagination: { pageSize: 2 } });
    const token = first.pagination?.nextToken ?? "";
    const second = await own.configuration.listEnvironmentClasses({ pagination: { pageSize: 2, token } });
    expect([...first.environmentClasses, ...second.environmentClasses].map(({ id }) => id)).toEqual(ids);
    expect(second.pagination?.nextToken).toBe("");
  });
});
