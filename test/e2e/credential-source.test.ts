import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { post, reasonOf, repository } from "../harness/call.ts";
import {
  type CredentialFixture,
  createCredentialFixture,
  HOST,
  overProject,
  remote,
} from "../harness/credential-fixture.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let world: CredentialFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  world = await createCredentialFixture(server);
});
afterAll(stopAll);

describe("the source of a project that an administrator's workflow names", () => {
  test("gets the administrator's credential until a member changes it, and again once it is adopted", async () => {
    const { admin, member, runner } = world;
    const projectId = await world.project(member);
    await world.setSource(projectId, admin);
    const workflowId = await world.workflow(admin, overProject(projectId));
    await world.start(workflowId, admin);
    expect(await world.credentialOfNextAction()).toBe("admin");

    await world.setSource(projectId, member, "secrets");
    await world.start(workflowId, admin);
    const work = await world.takeAction();
    expect(work.action.environment.spec.content.initializer).toMatchObject(repository(remote("secrets")));
    const refused = await runner.credential(work, HOST);
    expect([refused.status, reasonOf(refused)]).toEqual([400, "CREDENTIAL_WITHHELD"]);
    expect(refused.body.message).toContain(member.subject.id);
    expect(refused.body.message).toContain(
      "administrator can adopt the project's source by setting its initializer again",
    );
    await world.fail(work);

    await world.setSource(projectId, admin, "secrets");
    await world.start(workflowId, admin);
    expect(await world.credentialOfNextAction()).toBe("admin");
    // To set what is there already is to set it, no matter who does it.
    await world.setSource(projectId, member, "secrets");
    await world.start(workflowId, admin);
    expect(await world.credentialOfNextAction()).toBe("CREDENTIAL_WITHHELD");
  });

  test("counts as set by its creator while nobody has set it since, whatever else is changed", async () => {
    const { admin, member } = world;
    const [theirs, own] = [await world.project(member), await world.project(admin)];
    await world.call("ProjectService/UpdateProject", { projectId: theirs, name: "Renamed" }, admin);
    for (const [projectId, expected] of [
      [theirs, "CREDENTIAL_WITHHELD"],
      [own, "admin"],
    ] as const) {
      await world.start(await world.workflow(admin, overProject(projectId)), admin);
      expect(await world.credentialOfNextAction()).toBe(expected);
    }
  });

  test("leaves in the audit trail who set it before and who does now, and nothing where that stays", async () => {
    const { admin, member } = world;
    const projectId = await world.project(member);
    await world.setSource(projectId, member);
    await world.setSource(projectId, admin);
    await world.setSource(projectId, admin);
    await world.call("ProjectService/UpdateProject", { projectId, name: "Renamed" }, member);
    await world.setSource(projectId, member);
    const diffs = await withServerData(server, (store) =>
      builderOf(store.reader)
        .selectFrom("audit_log")
        .select(["diff", "packed_diff"])
        .where("subject_id", "=", projectId)
        .where("operation", "=", "service.v1.ProjectService/UpdateProject")
        .orderBy("sequence")
        .execute(),
    );
    expect(diffs.map((row) => JSON.parse(diffOf(row)).sourceSetBy)).toEqual([
      undefined,
      [[member.subject], [admin.subject]],
      undefined,
      undefined,
      [[admin.subject], [member.subject]],
    ]);
  });

  test("counts by what its setter is now: one that is no administrator any more, or blocked, lends nothing", async () => {
    const { admin, colleague, member } = world;
    const projectId = await world.project(colleague);
    const workflowId = await world.workflow(admin, overProject(projectId));
    const byMember = await world.workflow(member, overProject(projectId));
    const handed = async () => {
      await world.start(workflowId, admin);
      await world.start(byMember, member);
      return [await world.credentialOfNextAction(), await world.credentialOfNextAction()].sort();
    };
    expect(await handed()).toEqual(["admin", "member"]);
    const { id } = colleague.subject;
    const role = (role: string) =>
      world.call(
        "OrganizationService/SetRole",
        { userId: id, role, organizationId: world.home.organizationId },
        admin,
      );
    await role("ORGANIZATION_ROLE_MEMBER");
    expect(await handed()).toEqual(["CREDENTIAL_WITHHELD", "CREDENTIAL_WITHHELD"]);
    await role("ORGANIZATION_ROLE_ADMIN");
    const { accountId } = colleague;
    await world.call("AccountService/BlockAccount", { accountId, reason: "left" }, admin);
    expect(await handed()).toEqual(["CREDENTIAL_WITHHELD", "CREDENTIAL_WITHHELD"]);
    await world.call("AccountService/UnblockAccount", { accountId }, admin);
  });

  test("may be set by a service account, while that is in force", async () => {
    const { admin, robot } = world;
    const workflowId = await world.workflow(admin, overProject(await world.project(robot)));
    await world.start(workflowId, admin);
    expect(await world.credentialOfNextAction()).toBe("admin");
    const suspend = (suspended: number) =>
      withServerData(server, (store) =>
        store.write(OPERATOR, "test", async ({ db }) => {
          const { id } = robot.subject;
          await builderOf(db)
            .updateTable("service_account")
            .set({ suspended })
            .where("id", "=", id)
            .execute();
        }),
      );
    await suspend(1);
    await world.start(workflowId, admin);
    expect(await world.credentialOfNextAction()).toBe("CREDENTIAL_WITHHELD");
    await suspend(0);
  });
});

describe("a member's workflow", () => {
  test("uses its credential on what it set itself or an administrator did, not on another member's source", async () => {
    const { admin, member, other } = world;
    const projects = [
      [await world.project(member), "member"],
      [await world.project(admin), "member"],
      [await world.project(other), "CREDENTIAL_WITHHELD"],
    ] as const;
    for (const [projectId, expected] of projects) {
      await world.start(await world.workflow(member, overProject(projectId)), member);
      expect(await world.credentialOfNextAction()).toBe(expected);
    }
  });
});

describe("a service account as the executor", () => {
  test("serves sources of its own, of an administrator and of who named it, and no others", async () => {
    const { admin, member, other, robot } = world;
    const asRobot = { executor: robot.subject };
    const handed = async (maker: typeof member, of: typeof member) => {
      const workflowId = await world.workflow(maker, overProject(await world.project(of)), asRobot);
      await world.start(workflowId, maker);
      return world.credentialOfNextAction();
    };
    expect(await handed(member, member)).toBe("robot");
    expect(await handed(member, admin)).toBe("robot");
    expect(await handed(admin, robot)).toBe("robot");
    expect(await handed(admin, member)).toBe("CREDENTIAL_WITHHELD");
    expect(await handed(other, member)).toBe("CREDENTIAL_WITHHELD");
  });

  test("is not the setter of what a member had it clone, so that a project of that environment is not its word", async () => {
    const { admin, member, robot } = world;
    const context = { repositories: { repositoryUrls: { repoUrls: [remote("secrets")] } } };
    const workflowId = await world.workflow(member, context, { executor: robot.subject });
    await world.start(workflowId, member);
    const work = await world.takeAction();
    expect(await world.handed(work)).toBe("robot");
    const environmentId = work.action.environment.id;
    const { project } = await world.call(
      "ProjectService/CreateProjectFromEnvironment",
      { environmentId },
      member,
    );
    await world.fail(work);
    await world.start(await world.workflow(admin, overProject(project.id)), admin);
    expect(await world.credentialOfNextAction()).toBe("CREDENTIAL_WITHHELD");
  });
});

describe("a source that changes while an execution is under way", () => {
  test("before the lease is what the runner clones and what is decided on", async () => {
    const { admin, member, runner } = world;
    const projectId = await world.project(member);
    await world.setSource(projectId, admin);
    await world.start(await world.workflow(admin, overProject(projectId)), admin);
    const elsewhere = { initializer: repository("https://elsewhere.example.org/team/x.git") };
    await world.call("ProjectService/UpdateProject", { projectId, ...elsewhere }, member);
    const work = await world.takeAction();
    expect(work.action.environment.spec.content).toMatchObject(elsewhere);
    expect(reasonOf(await runner.credential(work, HOST))).toBe("VALUE_UNUSABLE");
    expect(reasonOf(await runner.credential(work, "elsewhere.example.org"))).toBe("CREDENTIAL_WITHHELD");
    await world.fail(work);
  });

  test("after the lease changes neither, for better or worse", async () => {
    const { admin, member, runner } = world;
    const projectId = await world.project(member);
    await world.setSource(projectId, admin);
    const workflowId = await world.workflow(admin, overProject(projectId));
    await world.start(workflowId, admin);
    const adopted = await world.takeAction();
    await world.call(
      "ProjectService/UpdateProject",
      { projectId, initializer: repository("https://elsewhere.example.org/team/x.git") },
      member,
    );
    expect(await world.handed(adopted)).toBe("admin");
    expect(reasonOf(await runner.credential(adopted, "elsewhere.example.org"))).toBe("VALUE_UNUSABLE");
    await world.fail(adopted);

    await world.setSource(projectId, member);
    await world.start(workflowId, admin);
    const strange = await world.takeAction();
    await world.setSource(projectId, admin);
    expect(await world.handed(strange)).toBe("CREDENTIAL_WITHHELD");
    // Another attempt begins from the project as it is now.
    await succeeded(runner.finish(strange, "OUTCOME_RELEASED"));
    expect(await world.credentialOfNextAction()).toBe("admin");
  });
});

describe("a refusal", () => {
  test("opens nothing: the record tells of no reading, and the answer of no token", async () => {
    const { admin, member, runner } = world;
    const workflowId = await world.workflow(admin, overProject(await world.project(member)));
    await world.start(workflowId, admin);
    const work = await world.takeAction();
    const rows = async () => {
      const body = {
        filter: { actions: ["runner.v1.WorkService/GetHostCredential"] },
        pagination: { pageSize: 100 },
      };
      return (await world.call("EventService/ListAuditLogs", body, admin)).entries.length;
    };
    const before = await rows();
    const refused = await post(
      server,
      "WorkService/GetHostCredential",
      { leaseId: work.leaseId, fence: work.fence, host: HOST },
      runner.token,
    );
    expect(JSON.stringify(refused.body)).not.toContain("credential of");
    expect(await rows()).toBe(before);
    await world.fail(work);
    await world.start(await world.workflow(admin, overProject(await world.project(admin))), admin);
    expect(await world.credentialOfNextAction()).toBe("admin");
    expect(await rows()).toBe(before + 1);
  });
});
