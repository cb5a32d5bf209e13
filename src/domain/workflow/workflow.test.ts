import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ExtAgentReasoningEffort } from "#gen/service/v1/agent_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { WorkflowActionSchema, WorkflowTriggerSchema } from "#gen/service/v1/workflow_pb.js";
import {
  CreateWorkflowRequestSchema,
  UpdateWorkflowRequestSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../identity/caller.ts";
import {
  changedWorkflow,
  deletedWorkflow,
  newWorkflow,
  requestedExecutor,
  requireMayRunAs,
  requireWorkflowNotPendingDeletion,
  withWebhookUrl,
  workflowSearchText,
} from "./workflow.ts";

const ID = "0191f7a0-5c3e-7d1a-8b2f-000000000001";
const THEN = 1_800_000_000_000;
const NOW = THEN + 1;
const user = (id: string) => create(SubjectSchema, { id, principal: Principal.USER });
const robot = create(SubjectSchema, { id: "robot", principal: Principal.SERVICE_ACCOUNT });
const creator = user("creator");
const action = (command: string) =>
  create(WorkflowActionSchema, {
    limits: { maxParallel: 1, maxTotal: 1 },
    steps: [{ step: { case: "task", value: { command } } }],
  });
const manual = create(WorkflowTriggerSchema, {
  trigger: { case: "manual", value: {} },
  context: { context: { case: "agent", value: { prompt: "x" } } },
});
const settings = { reasoningEffort: ExtAgentReasoningEffort.HIGH };

type Init<D extends DescMessage> = Extract<MessageInitShape<D>, { $typeName?: never }>;
type Update = Init<typeof UpdateWorkflowRequestSchema>;

const made = (req: Init<typeof CreateWorkflowRequestSchema> = {}) =>
  newWorkflow(
    create(CreateWorkflowRequestSchema, {
      name: "Nightly",
      description: "tidies up",
      triggers: [manual],
      action: action("true"),
      report: action("cat"),
      executor: robot,
      agentId: ID,
      extAgentSettings: settings,
      ...req,
    }),
    { id: ID, creator, now: THEN },
  );
const changed = (req: Update, present = made()) =>
  changedWorkflow(present, create(UpdateWorkflowRequestSchema, req), NOW);
const mask = (...paths: string[]) => ({ updateMask: { paths } });

describe("a new workflow", () => {
  test("is what the request says, enabled, with the times and the creator of its making", () => {
    const workflow = made();
    expect(workflow.metadata).toMatchObject({
      name: "Nightly",
      description: "tidies up",
      creator,
      executor: robot,
    });
    expect(workflow.metadata?.createdAt).toEqual(timestampFromMs(THEN));
    expect(workflow.metadata?.updatedAt).toEqual(timestampFromMs(THEN));
    expect(workflow.spec).toMatchObject({ agentId: ID, disabled: false, deleting: false });
    expect(workflow.spec?.triggers).toEqual([manual]);
    expect(workflow.spec?.report).toEqual(action("cat"));
    expect(workflow.spec?.extAgentSettings).toMatchObject(settings);
  });

  test("runs as its creator, without report and settings, where the request leaves them out or empty", () => {
    const workflow = newWorkflow(
      create(CreateWorkflowRequestSchema, {
        name: "x",
        action: action("true"),
        executor: {},
        extAgentSettings: {},
      }),
      { id: ID, creator, now: THEN },
    );
    expect(workflow.metadata?.executor).toEqual(creator);
    expect([workflow.spec?.report, workflow.spec?.extAgentSettings]).toEqual([undefined, undefined]);
  });

  test("is found by name, description and id, and posted to at its own URL", () => {
    expect(workflowSearchText(made({ name: "NIGHTLY" }))).toBe(`nightly\ntidies up\n${ID}`);
    expect(withWebhookUrl(made(), "https://c.example.org/base").webhookUrl).toBe(
      `https://c.example.org/base/workflows/${ID}/webhooks`,
    );
  });
});

describe("an update", () => {
  test("replaces what it sets, as a whole, and leaves the rest", () => {
    const before = made();
    const time = create(WorkflowTriggerSchema, {
      trigger: { case: "time", value: { cronExpression: "* * * * *" } },
      context: manual.context,
    });
    expect(changed({ name: "Weekly", disabled: true, triggers: [time] }, before)).toEqual({
      ...before,
      metadata: { ...before.metadata, name: "Weekly", updatedAt: timestampFromMs(NOW) },
      spec: { ...before.spec, disabled: true, triggers: [time] },
    });
    const { spec } = changed({ action: action("false"), report: action("ls") }) ?? {};
    expect([spec?.action, spec?.report]).toEqual([action("false"), action("ls")]);
    expect(before).toEqual(made());
  });

  test.each<[string, Update, object]>([
    ["the description when it is empty", { description: "" }, { metadata: { description: "" } }],
    ["the description by the mask", mask("description"), { metadata: { description: "" } }],
    ["the triggers by the mask", mask("triggers"), { spec: { triggers: [] } }],
    ["the report by the mask", mask("report"), { spec: { report: undefined } }],
    ["the executor when it is empty", { executor: {} }, { metadata: { executor: creator } }],
    ["the executor by the mask", mask("executor"), { metadata: { executor: creator } }],
    ["the agent when it is empty", { agentId: "" }, { spec: { agentId: "" } }],
    ["the agent by the mask", mask("agent_id"), { spec: { agentId: "" } }],
    ["the settings when they are empty", { extAgentSettings: {} }, { spec: { extAgentSettings: undefined } }],
    ["the settings by the mask", mask("ext_agent_settings"), { spec: { extAgentSettings: undefined } }],
  ])("clears %s, and nothing else", (_, req, cleared) => {
    const before = made();
    const part = cleared as { metadata?: object; spec?: object };
    expect(changed(req, before)).toEqual({
      ...before,
      metadata: { ...before.metadata, ...part.metadata, updatedAt: timestampFromMs(NOW) },
      spec: { ...before.spec, ...part.spec },
    });
  });

  test("enables a workflow by the mask", () => {
    const disabled = changed({ disabled: true });
    expect(disabled?.spec?.disabled).toBe(true);
    expect(changed(mask("disabled"), disabled)?.spec?.disabled).toBe(false);
    expect(changed({ disabled: false }, disabled)?.spec?.disabled).toBe(false);
  });

  test("takes what it sets although the mask names it, and nothing by a path into it", () => {
    const { spec } = changed({ action: action("x"), ...mask("action", "action.limits") }) ?? {};
    expect(spec?.action).toEqual(action("x"));
    expect(changed(mask("report.limits", "ext_agent_settings.model", "executor.id"))).toBeUndefined();
  });

  test.each(["name", "action", "action.limits", "workflow_id", "update_mask", "nothing", "triggers.context"])(
    "is refused with a mask that names %s",
    (path) => {
      expect(() => changed(mask(path))).toThrow(
        expect.objectContaining({ reason: ErrorReason.FIELD_MASK_INVALID, metadata: { path } }),
      );
    },
  );

  test("that changes nothing is none", () => {
    expect(changed({})).toBeUndefined();
    expect(
      changed({ name: "Nightly", triggers: [manual], executor: robot, disabled: false }),
    ).toBeUndefined();
  });
});

describe("a workflow that is pending deletion", () => {
  const deleting = deletedWorkflow(made(), NOW);

  test("says so, and is marked once", () => {
    expect(deleting?.spec?.deleting).toBe(true);
    expect(deleting?.metadata?.updatedAt).toEqual(timestampFromMs(NOW));
    expect(deleting && deletedWorkflow(deleting, NOW)).toBeUndefined();
  });

  test("takes no changes", () => {
    const refused = expect.objectContaining({ reason: ErrorReason.PENDING_DELETION });
    expect(() => changed({ name: "x" }, deleting)).toThrow(refused);
    expect(() => deleting && requireWorkflowNotPendingDeletion(deleting)).toThrow(refused);
  });
});

describe("the executor that a request asks for again", () => {
  const requested = (executor: object) =>
    requestedExecutor(create(UpdateWorkflowRequestSchema, { executor }), made());

  test("is none where it stays or goes back to the creator", () => {
    expect(requestedExecutor(create(UpdateWorkflowRequestSchema), made())).toBeUndefined();
    expect(requested({})).toBeUndefined();
    expect(requested(robot)).toBeUndefined();
  });

  test("is every other, also one that is only half a subject", () => {
    expect(requested(creator)).toEqual(creator);
    expect(requested({ principal: Principal.USER })).toMatchObject({ id: "" });
    expect(requestedExecutor(create(CreateWorkflowRequestSchema, { executor: robot }))).toEqual(robot);
  });
});

describe("a workflow that runs as another person", () => {
  const before = made({ executor: user("administrator") });
  const caller = (role: Caller["role"], id: string) => ({ role, subject: user(id) }) as Caller;
  const refusal = (after: ReturnType<typeof changed>, by: Caller) => {
    try {
      requireMayRunAs(before, after ?? before, by);
    } catch (error) {
      return error;
    }
    return undefined;
  };
  const refused = expect.objectContaining({ reason: ErrorReason.PERMISSION_DENIED });
  const member = caller("member", "creator");

  test.each<[string, Update]>([
    ["its action", { action: action("cat ~/.netrc") }],
    ["its triggers", mask("triggers")],
    ["its report", mask("report")],
    ["its agent", { agentId: "" }],
  ])("is not given another piece of work by its creator: %s", (_, req) => {
    expect(refusal(changed(req, before), member)).toEqual(refused);
    expect(refusal(changed({ ...req, executor: creator }, before), member)).toBeUndefined();
    expect(refusal(changed({ ...req, executor: robot }, before), member)).toBeUndefined();
    expect(refusal(changed(req, before), caller("administrator", "other"))).toBeUndefined();
    expect(refusal(changed(req, before), caller("member", "administrator"))).toBeUndefined();
  });

  test.each<[string, Update]>([
    ["named", { name: "x", description: "y" }],
    ["disabled", { disabled: true }],
    ["taken over", { executor: {} }],
  ])("is %s by its creator all the same", (_, req) => {
    expect(refusal(changed(req, before), member)).toBeUndefined();
  });
});
