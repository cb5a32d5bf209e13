import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { repository } from "../harness/call.ts";
import { expectRefused, ok } from "../harness/host-token.ts";
import { decisionOf, type OrganizationWithPolicies, organizationWithPolicies } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { ACTION, MANUAL } from "../harness/workflow.ts";

let server: ReachableServer;
let own: OrganizationWithPolicies;
let made = 0;
beforeAll(async () => {
  server = await startHostedServer();
});
beforeEach(async () => {
  made += 1;
  own = await organizationWithPolicies(server, `preview-${made}`);
});
afterAll(stopAll);

const initializer = repository("https://git.example.org/team/hello.git");
const preview = (change: object, token?: string) =>
  own.call(
    "OrganizationService/PreviewOrganizationPolicies",
    { change: { organizationId: own.organizationId, ...change } },
    token,
  );
const previewed = async (change: object) => ok(preview(change));

async function createWorkflow(token: string, body: object = {}): Promise<string> {
  const request = { name: "Nightly", action: ACTION, triggers: [MANUAL], ...body };
  return (await ok(own.call("WorkflowService/CreateWorkflow", request, token))).workflow.id;
}

describe("PreviewOrganizationPolicies", () => {
  test("names the workflows whose start would be refused, which the start then is, and changes nothing", async () => {
    const ofMember = await createWorkflow(own.member.token);
    await createWorkflow(own.administrator.token);
    const change = { disableFromScratch: true };
    const { effects, complete } = await previewed(change);
    expect(complete).toBe(true);
    expect(effects).toEqual([
      {
        fieldPath: "disableFromScratch",
        outcome: "OUTCOME_REFUSED",
        operation: "WorkflowService/StartWorkflow",
        resourceType: "workflow",
        count: 1,
        resources: [{ id: ofMember, name: "Nightly" }],
        allowed: "members to run over projects and repositories only",
        bytes: "0",
      },
    ]);
    expect((await own.policies()).disableFromScratch).toBe(false);
    await own.set(change);
    const refused = await own.call(
      "WorkflowService/StartWorkflow",
      { workflowId: ofMember },
      own.member.token,
    );
    expect(decisionOf(refused)).toMatchObject({
      fieldPath: "disableFromScratch",
      allowed: effects[0].allowed,
    });
    // What is refused already is no effect of the change.
    expect((await previewed({ ...change, portSharingDisabled: true })).effects).toEqual([]);
  });

  test("leaves workflows out that are disabled, and those of other organizations", async () => {
    const id = await createWorkflow(own.member.token);
    await ok(own.call("WorkflowService/UpdateWorkflow", { workflowId: id, disabled: true }));
    const other = await organizationWithPolicies(server, `preview-other-${made}`);
    const request = { name: "Theirs", action: ACTION, triggers: [MANUAL] };
    await ok(other.call("WorkflowService/CreateWorkflow", request, other.member.token));
    expect((await previewed({ disableFromScratch: true })).effects).toEqual([]);
  });

  test("counts the environments that one user could not start any more", async () => {
    const spec = { content: { initializer } };
    for (const desiredPhase of ["ENVIRONMENT_PHASE_RUNNING", "ENVIRONMENT_PHASE_STOPPED"])
      await ok(own.call("EnvironmentService/CreateEnvironment", { spec: { ...spec, desiredPhase } }));
    const atLimit = await previewed({ maximumRunningEnvironmentsPerUser: "1" });
    expect(atLimit.effects).toMatchObject([
      { fieldPath: "maximumRunningEnvironmentsPerUser", resourceType: "environment", count: 1 },
    ]);
    expect((await previewed({ maximumRunningEnvironmentsPerUser: "2" })).effects).toEqual([]);
  });

  test("names the projects that recommend an editor which would not be allowed", async () => {
    const { project } = await ok(own.call("ProjectService/CreateProject", { initializer, name: "hello" }));
    const recommendedEditors = { editors: { code: {} } };
    await ok(own.call("ProjectService/UpdateProject", { projectId: project.id, recommendedEditors }));
    const { effects } = await previewed({ allowedEditorIds: ["vim"] });
    expect(effects).toMatchObject([
      {
        fieldPath: "allowedEditorIds",
        operation: "ProjectService/UpdateProject",
        resources: [{ id: project.id, name: "hello" }],
      },
    ]);
    expect((await previewed({ allowedEditorIds: ["vim", "code"] })).effects).toEqual([]);
  });

  test("refuses what UpdateOrganizationPolicies refuses, and answers administrators alone", async () => {
    const group = "0199aaaa-0000-7000-8000-000000000000";
    for (const change of [
      { defaultEditorId: "vim", allowedEditorIds: ["code"] },
      { agentPolicy: { scmToolsAllowedGroupId: group } },
      { archiveEnvironmentsAfter: "86400s" },
      { updateMask: "nothing" },
    ]) {
      const [shown, done] = [await preview(change), await own.update(change)];
      expect(done.status).toBeGreaterThanOrEqual(400);
      expect([shown.status, shown.body.message]).toEqual([done.status, done.body.message]);
    }
    expectRefused(await preview({}, own.member.token), 403, "PERMISSION_DENIED");
  });
});
