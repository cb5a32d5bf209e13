import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ResourceOperation } from "#gen/service/v1/event_pb.js";
import type { WatchEventsResponse } from "#gen/service/v1/event_service_pb.js";
import {
  UpdateWorkflowRequestSchema,
  UpdateWorkflowResponseSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { type Answer, repository } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
import { auditTrailOf, expectRefused, ok } from "../harness/host-token.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { watch } from "../harness/watch.ts";
import { ACTION, MANUAL, type WorkflowCalls, workflowCalls } from "../harness/workflow.ts";

let server: ReachableServer;
let workflows: WorkflowCalls;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer();
  workflows = workflowCalls(server);
  ({ organizationId } = await ok(workflows.call("IdentityService/GetAuthenticatedIdentity", {})));
});
afterAll(stopAll);

/** A server that tells another URL than its own, so that its port is chosen for it. */
async function startBehind(baseUrl: string): Promise<{ behind: ReachableServer; url: string }> {
  for (;;) {
    const port = await freePort();
    const starting = startHostedServer({ args: ["--port", String(port), "--base-url", baseUrl] });
    const behind = await starting.catch((error: Error) => {
      // Somebody else was faster.
      if (!error.message.includes("is in use on")) throw error;
    });
    if (behind) return { behind, url: `http://127.0.0.1:${port}` };
  }
}

const FULL = {
  description: "tidies up",
  triggers: [MANUAL],
  report: ACTION,
  agentId: v7(),
  extAgentSettings: { model: "EXT_AGENT_MODEL_1" },
  parameters: [{ key: "word", description: "what to say" }],
};

/** A call in the binary form, which cannot tell an empty list from an absent one. */
async function updateInBinary(req: MessageInitShape<typeof UpdateWorkflowRequestSchema>) {
  const res = await fetch(`${server.url}/api/service.v1.WorkflowService/UpdateWorkflow`, {
    method: "POST",
    headers: { "content-type": "application/proto", authorization: `Bearer ${server.token}` },
    body: toBinary(UpdateWorkflowRequestSchema, create(UpdateWorkflowRequestSchema, req)) as BodyInit,
  });
  if (res.status !== 200) return { status: res.status, error: await res.json() };
  const { workflow } = fromBinary(UpdateWorkflowResponseSchema, new Uint8Array(await res.arrayBuffer()));
  return { status: res.status, workflow };
}

describe("a workflow", () => {
  test("is answered as it was written, with where it is posted to", async () => {
    const workflow = await workflows.created(FULL);
    expect(workflow.webhookUrl).toBe(`${server.url}/workflows/${workflow.id}/webhooks`);
    expect(workflow.spec).toMatchObject({ disabled: false, deleting: false, triggers: [MANUAL] });
    expect(workflow.metadata.executor).toEqual(workflow.metadata.creator);
    expect(workflow.metadata.updatedAt).toBe(workflow.metadata.createdAt);
    expect((await ok(workflows.get(workflow.id))).workflow).toEqual(workflow);
  });

  test("is posted to under the base URL where one is set", async () => {
    const { behind, url } = await startBehind("https://c.example.org/base/");
    const calls = workflowCalls({ ...behind, url });
    const workflow = await calls.created();
    expect(workflow.webhookUrl).toBe(`https://c.example.org/base/workflows/${workflow.id}/webhooks`);
    expect((await ok(calls.call("ListWorkflows", {}))).workflows).toEqual([workflow]);
  });

  test("is changed field by field: what is set is replaced, the rest stays, and the record tells both", async () => {
    const before = await workflows.created(FULL);
    const triggers = [{ ...MANUAL, context: { repositories: { repositoryUrls: { repoUrls: ["h:a"] } } } }];
    const after = await workflows.updated(before.id, { name: "Weekly", disabled: true, triggers });
    expect(after).toEqual({
      ...before,
      metadata: { ...before.metadata, name: "Weekly", updatedAt: expect.any(String) },
      spec: {
        ...before.spec,
        disabled: true,
        triggers: [
          {
            ...MANUAL,
            context: { repositories: { ...triggers[0]?.context.repositories, environmentClassId: "" } },
          },
        ],
      },
    });
    const { rows, kinds } = await auditTrailOf(server, before.id);
    expect(kinds).toEqual(["created", "updated"]);
    expect(Object.keys(rows[1]?.diff).toSorted()).toEqual([
      "metadata.name",
      "metadata.updatedAt",
      "spec.disabled",
      "spec.triggers",
    ]);
  });

  test("that an update leaves as it was is not recorded as changed", async () => {
    const before = await workflows.created(FULL);
    expect(await workflows.updated(before.id, {})).toEqual(before);
    expect(await workflows.updated(before.id, { name: "Nightly", ...FULL })).toEqual(before);
    expect((await auditTrailOf(server, before.id)).kinds).toEqual(["created"]);
  });

  test("is changed by its creator and administrators only, and read by everybody in the organization", async () => {
    const [creator, colleague] = await Promise.all(
      ["creator", "colleague"].map((name) =>
        addMember(server, { organizationId, email: `${name}@example.org` }),
      ),
    );
    const workflow = await workflows.created({}, creator?.token);
    expect(workflow.metadata.creator).toEqual({ id: creator?.userId, principal: "PRINCIPAL_USER" });
    expect((await ok(workflows.get(workflow.id, colleague?.token))).workflow).toEqual(workflow);
    const workflowId = workflow.id;
    for (const [operation, body] of [
      ["UpdateWorkflow", { name: "x" }],
      ["DeleteWorkflow", {}],
      ["GetWorkflowWebhookSecret", {}],
      ["RotateWorkflowWebhookSecret", {}],
    ] as const) {
      const refused = await workflows.call(operation, { workflowId, ...body }, colleague?.token);
      expectRefused(refused, 403, "PERMISSION_DENIED");
    }
    for (const token of [creator?.token, server.token]) {
      await workflows.updated(workflowId, { description: String(token === server.token) }, token);
      await ok(workflows.call("GetWorkflowWebhookSecret", { workflowId }, token));
      await ok(workflows.call("RotateWorkflowWebhookSecret", { workflowId }, token));
    }
    await ok(workflows.call("DeleteWorkflow", { workflowId }, creator?.token));
  });

  test("is nowhere to be found from another organization", async () => {
    const { token } = await addOrganization(server, "Another organization");
    const { id: workflowId } = await workflows.created();
    for (const operation of [
      "GetWorkflow",
      "UpdateWorkflow",
      "DeleteWorkflow",
      "GetWorkflowWebhookSecret",
      "RotateWorkflowWebhookSecret",
    ]) {
      expectRefused(
        await workflows.call(operation, { workflowId }, token),
        404,
        "NOT_FOUND",
        /^workflow not found$/,
      );
    }
    expect(
      (await ok(workflows.call("ListWorkflows", { filter: { workflowIds: [workflowId] } }, token))).workflows,
    ).toEqual([]);
  });
});

describe("what an update clears", () => {
  const cleared: [string, object, string, (workflow: Answer["body"]) => unknown, unknown][] = [
    ["the description", { description: "" }, "description", ({ metadata }) => metadata.description, ""],
    ["the triggers", { triggers: [] }, "triggers", ({ spec }) => spec.triggers, []],
    ["the parameters", { parameters: [] }, "parameters", ({ spec }) => spec.parameters, []],
    ["the report", { report: {} }, "report", ({ spec }) => spec.report, undefined],
    ["the agent", { agentId: "" }, "agentId", ({ spec }) => spec.agentId, ""],
    [
      "the agent's settings",
      { extAgentSettings: {} },
      "extAgentSettings",
      ({ spec }) => spec.extAgentSettings,
      undefined,
    ],
  ];

  test.each(cleared)("is %s: by an empty value, and by the mask", async (_, empty, path, read, none) => {
    for (const body of [empty, { updateMask: path }, { ...empty, updateMask: path }]) {
      const before = await workflows.created(FULL);
      expect(read(before)).not.toEqual(none);
      const after = await workflows.updated(before.id, body);
      expect(read(after)).toEqual(none);
      expect((await ok(workflows.get(before.id))).workflow).toEqual(after);
      // Nothing else went with it.
      const restored = await workflows.updated(before.id, {
        [path]: (FULL as Record<string, unknown>)[path],
      });
      expect({ ...restored, metadata: { ...restored.metadata, updatedAt: "" } }).toEqual({
        ...before,
        metadata: { ...before.metadata, updatedAt: "" },
      });
    }
  });

  test("is all of it at once", async () => {
    const before = await workflows.created(FULL);
    const { metadata, spec } = await workflows.updated(
      before.id,
      Object.assign({}, ...cleared.map(([, empty]) => empty)),
    );
    expect([metadata.description, spec]).toEqual([
      "",
      { triggers: [], action: ACTION, parameters: [], disabled: false, deleting: false, agentId: "" },
    ]);
  });

  test("is never the name nor the action", async () => {
    const { id } = await workflows.created();
    for (const updateMask of ["name", "action", "action.steps", "workflowId", "updateMask", "nothing"]) {
      expectRefused(await workflows.update(id, { updateMask }), 400, "FIELD_MASK_INVALID");
    }
    const empty = await workflows.update(id, { action: {} });
    expectRefused(empty, 400, "CONSTRAINT_VIOLATED");
    expect(empty.body.message).toContain("a workflow must have between 1 and 50 steps [action.steps]");
    expectRefused(await workflows.update(id, { name: "" }), 400, "CONSTRAINT_VIOLATED");
    const { metadata, spec } = await workflows.updated(id, {
      name: "x",
      action: ACTION,
      updateMask: "name,action",
    });
    expect([metadata.name, spec.action]).toEqual(["x", ACTION]);
  });

  test("is recognized in the binary form by the mask alone", async () => {
    const { id } = await workflows.created(FULL);
    const kept = await updateInBinary({ workflowId: id, triggers: [], parameters: [], name: "x" });
    expect(kept.workflow?.spec?.triggers).toHaveLength(1);
    expect(kept.workflow?.spec?.parameters).toHaveLength(1);
    const paths = ["triggers", "parameters", "report", "ext_agent_settings", "agent_id", "description"];
    const { workflow } = await updateInBinary({ workflowId: id, updateMask: { paths } });
    expect(workflow?.metadata?.description).toBe("");
    expect(workflow?.spec).toMatchObject({ triggers: [], parameters: [], agentId: "" });
    expect([workflow?.spec?.report, workflow?.spec?.extAgentSettings]).toEqual([undefined, undefined]);
    const refused = await updateInBinary({ workflowId: id, report: {} });
    expect([refused.status, refused.error.message]).toEqual([
      400,
      expect.stringMatching(/\[report\.limits\]/),
    ]);
  });
});

describe("deletion", () => {
  const started = async (body: object = {}) => {
    const initializer = repository("https://git.example.org/team/hello.git");
    const { project } = await ok(
      workflows.call("ProjectService/CreateProject", { name: "Hello", initializer }),
    );
    const triggers = [{ manual: {}, context: { projects: { projectIds: [project.id] } } }];
    const { id: workflowId } = await workflows.created({ triggers, ...body });
    const { workflowExecution } = await ok(workflows.call("StartWorkflow", { workflowId }));
    return { workflowId, workflowExecutionId: workflowExecution.id };
  };
  /** A stream of events, by which the background job tells that it has removed a workflow. */
  const watching = async () => {
    const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
    const stream = watch(transport, server.token);
    await stream.opened;
    return async (workflowId: string) => {
      const isGone = ({ operation, resourceId }: WatchEventsResponse) =>
        operation === ResourceOperation.DELETE && resourceId === workflowId;
      while (!stream.messages.some(isGone)) {
        const { length } = stream.messages;
        if ((await stream.until(length + 1)).length === length) throw await stream.ended;
      }
      stream.cancel();
    };
  };

  test("waits for the executions, and then takes them along", async () => {
    const { workflowId, workflowExecutionId } = await started();
    const gone = await watching();
    expect(await ok(workflows.call("DeleteWorkflow", { workflowId }))).toEqual({});
    expect(await ok(workflows.call("DeleteWorkflow", { workflowId }))).toEqual({});
    const { workflow } = await ok(workflows.get(workflowId));
    expect(workflow.spec.deleting).toBe(true);
    expectRefused(await workflows.update(workflowId, { name: "x" }), 400, "PENDING_DELETION");
    expectRefused(await workflows.call("StartWorkflow", { workflowId }), 400, "PENDING_DELETION");
    expectRefused(
      await workflows.call("RotateWorkflowWebhookSecret", { workflowId }),
      400,
      "PENDING_DELETION",
    );
    await ok(workflows.call("CancelWorkflowExecution", { workflowExecutionId }));
    await gone(workflowId);
    for (const operation of ["GetWorkflow", "DeleteWorkflow", "GetWorkflowWebhookSecret"]) {
      expectRefused(await workflows.call(operation, { workflowId }), 404, "NOT_FOUND");
    }
    expectRefused(await workflows.call("GetWorkflowExecution", { workflowExecutionId }), 404, "NOT_FOUND");
    expect((await auditTrailOf(server, workflowId)).kinds).toEqual(["created", "updated", "deleted"]);
  });

  test("with force cancels what runs", async () => {
    const { workflowId, workflowExecutionId } = await started();
    const gone = await watching();
    await ok(workflows.call("DeleteWorkflow", { workflowId, force: true }));
    await gone(workflowId);
    expect((await auditTrailOf(server, workflowExecutionId)).kinds).toEqual([
      "created",
      "updated",
      "deleted",
    ]);
  });
});
