import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Command } from "commander";
import { v7 } from "uuid";
import { declareFiles } from "../../src/commands/definitions/declare-files.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import {
  type HostedServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/files");

let server: HostedServer;
/** An organization of its own for each test, with a runner named builder. */
let own: { readonly url: string; readonly token: string; readonly organizationId: string };
let home: string;
let folder: string;
beforeAll(async () => {
  server = await startHostedServer();
  home = temporaryFolder();
});
beforeEach(async () => {
  const { token } = await addOrganization(server, `Files ${v7()}`);
  const { organizationId } = await ask("IdentityService/GetAuthenticatedIdentity", {}, token);
  own = { url: server.url, token, organizationId };
  await ask("RunnerService/CreateRunner", { name: "builder" });
  folder = temporaryFolder();
});
afterAll(stopAll);

const ask = (operation: string, request: object, token = own.token) =>
  succeeded(post(server, operation, request, token));
const chartroom = (args: readonly string[], { token = own.token, command = runHostedCommand } = {}) =>
  command(args, { XDG_CONFIG_HOME: home, CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: token });
const plan = (...more: readonly string[]) => chartroom(["plan", "-f", folder, ...more]);
const apply = (...more: readonly string[]) => chartroom(["apply", "-f", folder, ...more]);

/** Writes a file into the folder; JSON is YAML, too. */
function write(name: string, ...documents: readonly object[]): string {
  const file = join(folder, name);
  writeFileSync(file, documents.map((each) => JSON.stringify(each, undefined, 1)).join("\n---\n"));
  return file;
}
const remove = (name: string) => rmSync(join(folder, name));

const head = { kind: "Folder", owner: "platform" };
const group = { kind: "Group", name: "reviewers", description: "who reviews" };
const environmentClass = {
  kind: "EnvironmentClass",
  displayName: "Small machine",
  description: "two processors",
  runnerId: "Runner/builder",
  configuration: [{ key: "size", value: "small" }],
};
const securityPolicy = {
  kind: "SecurityPolicy",
  metadata: { name: "No downloads" },
  spec: { executables: { rules: [{ path: "curl", effect: "EFFECT_BLOCK" }] } },
};
const policies = {
  kind: "OrganizationPolicies",
  maximumEnvironmentTimeout: "7200s",
  securityPolicyId: "SecurityPolicy/No downloads",
  agentPolicy: { commandDenyList: ["shutdown"], scmToolsAllowedGroupId: "Group/reviewers" },
};
const project = {
  kind: "Project",
  metadata: { name: "hello", annotations: { team: "a" } },
  initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
  technicalDescription: "says hello",
  environmentClasses: [{ environmentClassId: "EnvironmentClass/Small machine" }],
  recommendedEditors: { editors: { vim: { versions: ["9"] } } },
};
const workflow = {
  kind: "Workflow",
  metadata: { name: "nightly", description: "each night" },
  spec: {
    triggers: [
      { time: { cronExpression: "0 3 * * *" }, context: { projects: { projectIds: ["Project/hello"] } } },
    ],
    action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "make" } }] },
    disabled: true,
  },
};

/** A folder with a document of each kind. */
function writeAll(): void {
  write("chartroom.yaml", head);
  // In an order in which none is after what it names.
  write("a.yaml", workflow, project);
  write("b/c.json", policies);
  write("d.yaml", securityPolicy, group, environmentClass);
}
beforeEach(() => {
  mkdirSync(join(folder, "b"));
});

/** The newest entries of the audit trail: what has been changed. */
async function recorded(): Promise<string[]> {
  const { entries } = await ask("EventService/ListAuditLogs", { pagination: { pageSize: 100 } });
  return entries.map(({ id }: { id: string }) => id);
}

describe("a folder of files", () => {
  test("is planned, applied, and applied again without a change", async () => {
    writeAll();
    const before = await recorded();
    const planned = await plan();
    expect([planned.code, planned.stderr]).toEqual([2, ""]);
    expect(planned.stdout).toContain("+ Project/hello");
    expect(planned.stdout).toContain(
      'environmentClasses[0].environmentClassId: "EnvironmentClass/Small machine"',
    );
    expect(planned.stdout).toMatch(/\n5 to create, 1 to update; 0 unchanged\n$/);
    // A plan is carried out and taken back: nothing is left of it.
    expect(await recorded()).toEqual(before);

    const applied = await chartroom(["apply", "-f", folder], { command: runCommand });
    expect([applied.code, applied.stderr]).toEqual([0, ""]);
    expect(applied.stdout).toMatch(/\n5 created, 1 updated; 0 unchanged\n$/);
    const { projects } = await ask("ProjectService/ListProjects", {});
    expect(projects).toMatchObject([
      {
        metadata: { name: "hello", annotations: { team: "a", "chartroom/owner": "platform" } },
        recommendedEditors: { editors: { vim: { versions: ["9"] } } },
      },
    ]);
    const { workflows } = await ask("WorkflowService/ListWorkflows", {});
    expect(workflows).toMatchObject([
      {
        metadata: { name: "nightly", annotations: { values: { "chartroom/owner": "platform" } } },
        spec: {
          disabled: true,
          triggers: [{ context: { projects: { projectIds: [projects[0].id] } } }],
        },
      },
    ]);
    const after = await recorded();

    expect(await plan()).toEqual({ code: 0, stdout: "no change; 6 unchanged\n", stderr: "" });
    expect(await apply()).toEqual({ code: 0, stdout: "no change; 6 unchanged\n", stderr: "" });
    expect(await recorded()).toEqual(after);
  });

  test("shows what differs, no matter who has changed it, and puts it right", async () => {
    writeAll();
    await apply();
    write("a.yaml", workflow, {
      ...project,
      devcontainerFilePath: "small.json",
      technicalDescription: "other",
    });
    const { groups } = await ask("GroupService/ListGroups", {});
    await ask("GroupService/UpdateGroup", {
      groupId: groups[0].id,
      name: "reviewers",
      description: "others",
    });
    const planned = await plan();
    expect(planned.code).toBe(2);
    expect(planned.stdout).toContain('    description: "others" -> "who reviews"\n');
    expect(planned.stdout).toContain('    technicalDescription: "says hello" -> "other"\n');
    expect(planned.stdout).toContain('    devcontainerFilePath: "small.json"\n');
    expect(planned.stdout).toMatch(/\n2 to update; 4 unchanged\n$/);
    const json = JSON.parse((await apply("--json")).stdout);
    expect(json).toMatchObject({
      owner: "platform",
      unchanged: 4,
      changes: [
        { action: "update", kind: "Group", name: "reviewers", id: groups[0].id },
        {
          action: "update",
          kind: "Project",
          file: join(folder, "a.yaml"),
          after: { devcontainerFilePath: "small.json" },
        },
      ],
    });
    expect((await plan()).code).toBe(0);
    const { groups: again } = await ask("GroupService/ListGroups", {});
    expect(again).toMatchObject([{ description: "who reviews" }]);
  });

  test("removes only with consent what its files do not describe any more", async () => {
    writeAll();
    await apply();
    // What others have made is none of the folder's.
    await ask("GroupService/CreateGroup", { organizationId: own.organizationId, name: "of others" });
    remove("a.yaml");
    remove("d.yaml");
    write("b/c.json", {
      kind: "OrganizationPolicies",
      securityPolicyId: "",
      agentPolicy: { scmToolsAllowedGroupId: "" },
    });
    const planned = await plan();
    expect(planned).toMatchObject({
      code: 2,
      stderr: "chartroom: 5 that the files do not describe: --prune removes them\n",
    });
    expect(planned.stdout).toMatch(/- Workflow\/nightly.*- Project\/hello.*5 to remove/s);
    expect((await apply()).code).toBe(0);
    const asked = await apply("--prune");
    expect(asked).toMatchObject({ code: 1, stdout: "" });
    expect(asked.stderr).toContain("give --yes");
    expect((await ask("WorkflowService/ListWorkflows", {})).workflows).toHaveLength(1);

    expect(await apply("--prune", "--yes")).toMatchObject({ code: 0, stderr: "" });
    const { groups } = await ask("GroupService/ListGroups", {});
    expect(groups.map(({ name }: { name: string }) => name)).toEqual(["of others"]);
    const { environmentClasses } = await ask("RunnerConfigurationService/ListEnvironmentClasses", {});
    expect(environmentClasses).toMatchObject([{ displayName: "Small machine", enabled: false }]);
    expect(await plan("--prune")).toMatchObject({ code: 0, stderr: "" });
  });

  test("removes nothing that has come to belong to others while somebody was asked", async () => {
    write("all.yaml", head, group);
    await apply();
    write("all.yaml", head);
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough().setEncoding("utf8");
    const unused = () => undefined;
    const program = new Command();
    declareFiles(program, {
      env: { XDG_CONFIG_HOME: home, CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: own.token },
      ...{ print: unused, printError: unused, setExitCode: unused, signalGroup: unused },
      ...{ input, output, isRoot: false, nodePath: process.execPath, figures: process },
    });
    const asked = new Promise<void>((resolve) => {
      let shown = "";
      output.on("data", (text: string) => {
        shown += text;
        if (shown.includes("Remove these?")) resolve();
      });
    });
    const applying = program.parseAsync(["apply", "-f", folder, "--prune"], { from: "user" });
    await Promise.race([asked, applying]);
    const { groups } = await ask("GroupService/ListGroups", {});
    await ask("GroupService/UpdateGroup", {
      groupId: groups[0].id,
      name: "reviewers",
      annotations: { values: { "chartroom/owner": "other" } },
    });
    input.write("y\n");
    await expect(applying).rejects.toThrow("has changed meanwhile: nothing was changed");
    expect((await ask("GroupService/ListGroups", {})).groups).toHaveLength(1);
  });

  test("has all of its changes made or none, and names what is wrong where it is written", async () => {
    const file = write("all.yaml", head, group, {
      ...workflow,
      spec: { ...workflow.spec, triggers: [], action: { ...workflow.spec.action, steps: [] } },
    });
    const refused = await apply();
    // A rule of the contract.
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      new RegExp(
        `^chartroom: ${file}:\\d+: spec\\.action\\.steps: a workflow must have between 1 and 50 steps\n$`,
      ),
    );
    write("all.yaml", head, group, {
      ...workflow,
      spec: {
        ...workflow.spec,
        triggers: [{ time: { cronExpression: "0 0 30 2 *" }, context: { agent: { prompt: "a" } } }],
      },
    });
    // A rule of the service, which the plan tells as well.
    const planned = await plan();
    expect(planned).toMatchObject({ code: 1, stdout: "" });
    expect(planned.stderr).toMatch(new RegExp(`^chartroom: ${file}:\\d+: spec\\.triggers\\[0\\]\\.time`));
    write(
      "all.yaml",
      head,
      { ...group, descriptio: "a" },
      { ...project, environmentClasses: [{ environmentClassId: "EnvironmentClass/none" }] },
    );
    const unread = await apply();
    expect(unread.stderr).toMatch(
      new RegExp(
        `${file}:\\d+: descriptio: is no field of Group\n${file}:\\d+: environmentClasses\\[0\\]\\.environmentClassId: names no EnvironmentClass that there is\n$`,
      ),
    );
    write("all.yaml", head, group, { ...group, description: "again" });
    expect((await apply()).stderr).toMatch(/:\d+: name: is described already, by .*all\.yaml:\d+\n$/);
    write("all.yaml", group);
    expect((await apply()).stderr).toContain("no document that says its owner");
    // None of it has left anything.
    expect((await ask("GroupService/ListGroups", {})).groups).toEqual([]);
  });

  test("belongs to its owner: another folder cannot take what it describes", async () => {
    write("all.yaml", head, group);
    await apply();
    write("all.yaml", { ...head, owner: "other" }, { ...group, description: "mine" });
    const refused = await apply("--adopt");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("belongs to the folder of platform");
  });
});

describe("an export", () => {
  test("shows no change right after, and is taken by a folder with --adopt", async () => {
    const made = await ask("ProjectService/CreateProject", {
      name: "hello",
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
      prebuildConfiguration: { enabled: true, trigger: { dailySchedule: { hourUtc: 4 } } },
    });
    for (const name of ["nightly", "twice", "twice"])
      await ask("WorkflowService/CreateWorkflow", {
        name,
        triggers: [
          { pullRequest: {}, context: { fromTrigger: {} } },
          { manual: {}, context: { projects: { projectIds: [made.project.id] } } },
        ],
        action: workflow.spec.action,
      });
    await ask("GroupService/CreateGroup", { organizationId: own.organizationId, name: "reviewers" });
    const exported = await chartroom(["export", folder, "--owner", "platform"]);
    expect([exported.code, exported.stderr]).toEqual([
      0,
      'chartroom: left out: 2 of the kind Workflow have the name "twice"\n',
    ]);
    expect(exported.stdout.split("\n")).toContain(join(folder, "workflows.yaml"));
    expect(await plan()).toEqual({
      code: 0,
      stdout: "no change; 4 unchanged\n",
      stderr: "chartroom: 3 that no folder owns: apply --adopt takes them\n",
    });
    expect((await chartroom(["export", folder])).stderr).toContain("there are files already");
    expect((await plan("--adopt")).code).toBe(2);
    expect(await apply("--adopt")).toMatchObject({ code: 0, stderr: "" });
    expect(await plan()).toEqual({ code: 0, stdout: "no change; 4 unchanged\n", stderr: "" });
    const printed = await chartroom(["export", "--owner", "platform"]);
    expect(printed.stdout).toMatch(/projectIds:\s+- Project\/hello\n/);
    expect(printed.stdout).not.toContain("chartroom/owner");
    expect(await chartroom(["export", "-"])).toEqual({
      code: 1,
      stdout: "",
      stderr: "chartroom: - is no folder: name none for standard output, or ./- for a folder of that name\n",
    });
    // Of another folder: what it owns is not this one's.
    expect((await chartroom(["export", "--owner", "other"])).stderr).toContain(
      "1 of the kind Project belong to other folders",
    );
  });
});

describe("the example", () => {
  test("of the page is applied as it is", async () => {
    const applied = await chartroom(["apply", "-f", EXAMPLE]);
    expect([applied.code, applied.stderr]).toEqual([0, ""]);
    expect(applied.stdout).toMatch(/\n5 created; 0 unchanged\n$/);
    expect(await chartroom(["plan", "-f", EXAMPLE])).toMatchObject({
      code: 0,
      stdout: "no change; 5 unchanged\n",
    });
  });
});

describe("changes of several resources", () => {
  const placeholderId = "00000000-0000-4000-8000-000000000001";
  const preview = (changes: readonly object[], token = own.token) =>
    post(server, "ResourceService/PreviewChanges", { changes }, token);
  const make = (changes: readonly object[], token = own.token, headers = {}) =>
    post(server, "ResourceService/ApplyChanges", { changes }, token, headers);
  const newGroup = (name: string) => ({ createGroup: { organizationId: own.organizationId, name } });
  const groups = async () => (await ask("GroupService/ListGroups", {})).groups;

  test("need the permission of each, and a token that writes only to be made", async () => {
    const { token } = await ask("UserService/CreatePersonalAccessToken", { readOnly: true });
    expect(await preview([newGroup("reviewers")], token)).toMatchObject({ status: 200 });
    expect(await make([newGroup("reviewers")], token)).toMatchObject({ status: 403 });
    const member = await addMember(server, {
      organizationId: own.organizationId,
      email: `${v7()}@localhost`,
    });
    const created = { createProject: { name: "mine", initializer: { specs: [] } } };
    for (const call of [preview, make])
      expect(await call([created, newGroup("reviewers")], member.token)).toMatchObject({
        status: 403,
        body: { details: [{ debug: { metadata: { permission: "create_group", change: "1" } } }] },
      });
    expect((await ask("ProjectService/ListProjects", {})).projects).toEqual([]);
    expect(await groups()).toEqual([]);
  });

  test("are made once by a request with a key, and name what earlier ones create", async () => {
    const changes = [
      { placeholderId, ...newGroup("reviewers") },
      { updateGroup: { groupId: placeholderId, name: "reviewers", description: "all" } },
    ];
    const first = await make(changes, own.token, { "idempotency-key": "once" });
    const second = await make(changes, own.token, { "idempotency-key": "once" });
    expect(first.status).toBe(200);
    expect(second.body).toEqual(first.body);
    const [made] = await groups();
    expect(made).toMatchObject({ name: "reviewers", description: "all" });
    expect(first.body.resources).toMatchObject([
      { resourceId: made.id, after: { group: { description: "" } } },
      {
        resourceId: made.id,
        before: { group: { description: "" } },
        after: { group: { description: "all" } },
      },
    ]);
    expect(await make([changes[0] ?? {}, changes[0] ?? {}])).toMatchObject({ status: 400 });
  });

  test("reach no other organization", async () => {
    const other = await addOrganization(server, `Other ${v7()}`);
    const { project: foreign } = await ask(
      "ProjectService/CreateProject",
      { name: "a", initializer: { specs: [] } },
      other.token,
    );
    for (const projectId of [foreign.id, v7()])
      expect(await preview([{ updateProject: { projectId, name: "mine" } }])).toMatchObject({
        status: 404,
        body: { message: "project not found" },
      });
  });
});
