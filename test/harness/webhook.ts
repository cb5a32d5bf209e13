import { type Answer, post } from "./call.ts";
import type { ReachableServer } from "./server.ts";

/** A workflow with a webhook. */
export interface TestWorkflow {
  readonly id: string;
  /** The key that deliveries to it are signed with. */
  readonly secret: string;
}

/** A daily schedule that comes due while tests run only where they move its next instant: that is half a day away. */
export const IN_HALF_A_DAY = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;

/** A repository context of one action, which waits as long as there is no runner. */
export const OVER_REPOSITORY = {
  repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/team/ship.git"] } },
};
export const MANUAL = { manual: {}, context: OVER_REPOSITORY };
export const ONE_COMMAND = {
  limits: { maxParallel: 1, maxTotal: 10 },
  steps: [{ task: { command: "true" } }],
};

type Caller = Pick<ReachableServer, "url" | "token">;

/** Creates a workflow and fetches its secret. */
export async function addWorkflow(
  server: Caller,
  fields: Readonly<Record<string, unknown>> = { triggers: [MANUAL] },
): Promise<TestWorkflow> {
  const made = await post(server, "WorkflowService/CreateWorkflow", {
    name: "Nightly",
    action: ONE_COMMAND,
    ...fields,
  });
  if (made.status !== 200) throw new Error(JSON.stringify(made.body));
  const { id } = made.body.workflow;
  const { body } = await post(server, "WorkflowService/GetWorkflowWebhookSecret", { workflowId: id });
  return { id, secret: body.secret };
}

/** Posts to the webhook of a workflow. */
export async function deliver(
  server: Pick<ReachableServer, "url">,
  workflowId: string,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const res = await fetch(`${server.url}/workflows/${workflowId}/webhooks`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: body as BodyInit,
  });
  const text = await res.text();
  return { status: res.status, header: res.headers, body: text === "" ? undefined : JSON.parse(text) };
}

/** Returns the status of a delivery's response and its verdicts without their prefix. */
export function verdictsOf({ status, body }: Answer): [status: number, ...verdicts: string[]] {
  const verdicts = (body?.verdicts ?? []) as { verdict: string }[];
  return [status, ...verdicts.map(({ verdict }) => verdict.replace("TRIGGER_VERDICT_", ""))];
}

/** Returns the trigger events of a workflow, oldest first; at most 100. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into entries of every kind
export async function ledgerOf(server: Caller, workflowId: string): Promise<any[]> {
  const { body } = await post(server, "WorkflowService/ListWorkflowTriggerEvents", {
    filter: { workflowIds: [workflowId] },
    pagination: { pageSize: 100 },
  });
  return body.triggerEvents.reverse();
}

/** Returns the executions of a workflow, oldest first; at most 100. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into executions of every kind
export async function executionsOf(server: Caller, workflowId: string): Promise<any[]> {
  const { body } = await post(server, "WorkflowService/ListWorkflowExecutions", {
    filter: { workflowIds: [workflowId] },
    pagination: { pageSize: 100 },
  });
  return body.workflowExecutions.reverse();
}
