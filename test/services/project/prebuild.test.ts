import { clone, create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { createDuePrebuilds } from "../../../src/jobs/prebuilds.ts";
import { blockAccount } from "../../../src/services/access/account-block.ts";
import { findPrebuild, findPrebuilds } from "../../../src/store/project/prebuild.ts";
import { findProject, updateProject } from "../../../src/store/project/project.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { DAY_MS, MINUTE_MS, START_MS } from "../../harness/test-store.ts";
import { atHour, type Configuration, HOUR_MS, openPrebuilt, type Prebuilt } from "./prebuilt.ts";

let made: Prebuilt;
beforeEach(async () => {
  made = await openPrebuilt();
});
afterEach(() => made.close());

describe("the prebuilds of a project", () => {
  test("are due once a day, at the hour or in the quarter of an hour after it", async () => {
    await made.project();
    await made.passTo(START_MS + 3 * HOUR_MS - 1);
    expect(await made.states()).toEqual([]);
    await made.passTo(START_MS + 3 * HOUR_MS + 15 * MINUTE_MS);
    expect(await made.states()).toEqual(["waiting"]);
    const [first] = await made.prebuilds();
    await made.passTo(START_MS + DAY_MS + 3 * HOUR_MS - 1);
    expect(await made.prebuilds()).toEqual([first]);
    await made.finish(await made.leaseOf("prebuild"));
    await made.passToDay(1);
    expect(await made.states()).toEqual(["waiting", "ready"]);
    const [second] = await made.prebuilds();
    expect(second?.instantMs).toBe((first?.instantMs ?? 0) + DAY_MS);
  });

  test("are one for each class of the configuration, for the runner of the class", async () => {
    const other = await made.own.runnerWithClass("south");
    await made.project({ environmentClassIds: [made.classId, other.classId] });
    await made.passToDay(0);
    const found = await made.prebuilds();
    expect(found.map((each) => [each.environmentClassId, each.runnerId]).sort()).toEqual(
      [
        [made.classId, made.runnerId],
        [other.classId, other.runnerId],
      ].sort(),
    );
    expect(await made.lease()).toBeDefined();
    expect(await made.lease()).toBeUndefined();
  });

  test("go on with the latest day alone after a downtime of many", async () => {
    await made.project();
    await made.passToDay(7);
    const found = await made.prebuilds();
    expect(found.map(({ state }) => state)).toEqual(["waiting"]);
    expect(new Date(found[0]?.instantMs ?? 0).toISOString()).toMatch(/^2026-01-08T03:/);
    await made.pass(HOUR_MS);
    expect(await made.states()).toHaveLength(1);
  });

  test("are made once when two look at the same time", async () => {
    await made.project();
    made.clock.now = START_MS + 4 * HOUR_MS;
    await Promise.all([1, 2, 3].map(() => createDuePrebuilds(made.store, made.clock.now)));
    expect(await made.states()).toEqual(["waiting"]);
  });

  test("are made for more projects than are looked up at a time", async () => {
    await Promise.all(Array.from({ length: 130 }, () => made.project()));
    await made.passToDay(0);
    expect(await made.states()).toHaveLength(130);
  });

  test.each<[string, Configuration]>([
    ["is disabled", { enabled: false }],
    ["names no class", { environmentClassIds: [] }],
    ["has no trigger", { trigger: {} }],
  ])("are none while the configuration %s", async (_, change) => {
    await made.project(change);
    await made.passToDay(1);
    expect(await made.states()).toEqual([]);
  });

  test("come and go with the configuration", async () => {
    const projectId = await made.project({ enabled: false });
    const configure = (prebuildConfiguration: Configuration) =>
      made.own.projects.updateProject({ projectId, prebuildConfiguration });
    const enabled = { enabled: true, environmentClassIds: [made.classId] };
    await configure({ ...enabled, trigger: atHour(5) });
    await made.passToDay(0, 5);
    expect(await made.states()).toEqual([]);
    await made.passToDay(0, 6);
    expect(await made.states()).toEqual(["waiting"]);
    await configure({ ...enabled, trigger: atHour(7) });
    // What is due now is done for the hour that is set now.
    await made.passToDay(0, 8);
    const [latest] = await made.prebuilds();
    expect(new Date(latest?.instantMs ?? 0).getUTCHours()).toBe(7);
    await configure({ enabled: false });
    await made.passToDay(3);
    expect((await made.prebuilds()).map(({ id }) => id)).toEqual([latest?.id]);
  });

  test("stay due when the project changes otherwise after their instant", async () => {
    const projectId = await made.project();
    made.clock.now = START_MS + 4 * HOUR_MS;
    await made.own.projects.updateProject({ projectId, name: "Renamed meanwhile" });
    await made.pass(0);
    expect(await made.states()).toEqual(["waiting"]);
  });

  test("of a day before, which nobody has begun, make room for those of today", async () => {
    await made.project();
    await made.passToDay(0);
    await made.passToDay(1);
    expect(await made.states()).toEqual(["waiting"]);
    expect(await made.openWork()).toEqual([WorkKind.PREBUILD]);
    const { content } = await made.leaseOf("prebuild");
    const [today] = await made.prebuilds();
    expect(content.prebuildId).toBe(today?.id);
  });
});

/** A member of the organization with an account of its own. */
async function aColleague() {
  const [accountId, id] = [made.newId(), made.newId()];
  await made.store.write(SYSTEM, "test", async ({ db, now }) => {
    const times = { created_at: now, updated_at: now };
    const names = { name: "A colleague", name_folded: "a colleague", search_text: "a colleague" };
    await builderOf(db)
      .insertInto("account")
      .values({ id: accountId, email: "colleague@example.org", blocked_at: null, ...names, ...times })
      .execute();
    const { organizationId } = made.caller;
    await builderOf(db)
      .insertInto("member")
      .values({
        id,
        organization_id: organizationId,
        account_id: accountId,
        role: 2,
        created_at: now,
        left_at: null,
      })
      .execute();
  });
  return { accountId, executor: { id, principal: Principal.USER } };
}

async function aServiceAccount() {
  const serviceAccountId = made.newId();
  const { organizationId } = made.caller;
  await made.store.write(SYSTEM, "test", ({ db }) =>
    builderOf(db)
      .insertInto("service_account")
      .values({
        id: serviceAccountId,
        organization_id: organizationId,
        creator_account_id: null,
        valid_until: Number.MAX_SAFE_INTEGER,
        suspended: 0,
        search_text: "",
        body: "{}",
      })
      .execute(),
  );
  const suspend = () =>
    made.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("service_account")
        .set({ suspended: 1 })
        .where("id", "=", serviceAccountId)
        .execute(),
    );
  return { serviceAccountId, suspend };
}

describe("an executor that cannot act", () => {
  test("lets prebuilds fail when they are due", async () => {
    const { serviceAccountId, suspend } = await aServiceAccount();
    await suspend();
    await made.project({ executor: { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT } });
    await made.passToDay(0);
    expect(await made.states()).toEqual(["failed"]);
    expect(await made.failures()).toEqual([
      expect.stringMatching(/^the executor is a service account that is susp/),
    ]);
    expect(await made.openWork()).toEqual([]);
  });

  test("lets them fail when they are given out, and what a lost attempt left is removed", async () => {
    const { serviceAccountId, suspend } = await aServiceAccount();
    await made.project({ executor: { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT } });
    await made.passToDay(0);
    await made.leaseOf("prebuild");
    await suspend();
    await made.lose();
    await made.leaseOf("prebuildRemoval");
    expect(await made.states()).toEqual(["failing"]);
  });

  test("is one whose account is blocked", async () => {
    const { accountId, executor } = await aColleague();
    const projectId = await made.project();
    await made.store.write(SYSTEM, "test", async (tx) => {
      const before = await findProject(tx.db, made.caller, projectId);
      if (!before?.prebuildConfiguration) throw new Error("the project has no prebuilds");
      const after = clone(ProjectSchema, before);
      // As a colleague leaves it that took the project's prebuilds on.
      if (after.prebuildConfiguration) after.prebuildConfiguration.executor = create(SubjectSchema, executor);
      await updateProject(tx, made.caller, before, after);
      await blockAccount(tx, accountId, "");
    });
    await made.passToDay(0);
    expect(await made.failures()).toEqual([expect.stringMatching(/^the account of the executor is blocked/)]);
  });
});

describe("an environment class", () => {
  const setEnabled = (enabled: boolean) =>
    made.own.configuration.updateEnvironmentClass({ environmentClassId: made.classId, enabled });

  test("that is disabled gets no prebuild when it is due, nor when it is given out", async () => {
    await made.project();
    await setEnabled(false);
    await made.passToDay(0);
    expect(await made.states()).toEqual(["failed"]);
    await setEnabled(true);
    await made.passToDay(1);
    expect(await made.states()).toEqual(["waiting"]);
    await setEnabled(false);
    expect(await made.lease()).toBeUndefined();
    expect(await made.failures()).toEqual(
      Array(2).fill(expect.stringMatching(/class is disabled: enable it/)),
    );
  });

  test("goes with its runner, and takes what was prepared there along", async () => {
    const other = await made.own.runnerWithClass("south");
    await made.project({ environmentClassIds: [made.classId, other.classId] });
    await made.passToDay(0);
    await made.finish(await made.leaseOf("prebuild"));
    await made.passToDay(1);
    await made.leaseOf("prebuild");
    await made.own.runners.deleteRunner({ runnerId: made.runnerId, force: true });
    await made.passToDay(2);
    const left = await made.prebuilds();
    expect(left.map((each) => each.environmentClassId)).toEqual([other.classId]);
    expect(await made.openWork()).toEqual([WorkKind.PREBUILD]);
  });
});

describe("prebuilds", () => {
  test("are of one organization: another finds none", async () => {
    await made.project();
    await made.passToDay(0);
    const [prebuild] = await made.prebuilds();
    const other = await made.createOrganization("ocean");
    expect(await findPrebuilds(made.store.reader, other, {})).toEqual([]);
    expect(await findPrebuild(made.store.reader, other, prebuild?.id ?? "")).toBeUndefined();
  });

  test("are in the audit trail, with who had them made and what they were filled with", async () => {
    const projectId = await made.project();
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    await made.finish(leased);
    const { audit, events } = await made.history(made.caller);
    const rows = audit.filter(({ subject_type }) => subject_type === "prebuild");
    expect(rows.map(({ operation }) => operation)).toEqual(["job/prebuilds", "test", "test"]);
    expect(JSON.parse(rows[0]?.diff ?? "")).toMatchObject({
      projectId: [null, projectId],
      environmentClassId: [null, made.classId],
      state: [null, "waiting"],
    });
    expect(JSON.parse(rows[2]?.diff ?? "")).toMatchObject({ state: ["running", "ready"] });
    const kinds = events.filter(({ resource_type }) => resource_type === "prebuild").map(({ kind }) => kind);
    expect(kinds).toEqual(["created", "updated", "updated"]);
  });
});
