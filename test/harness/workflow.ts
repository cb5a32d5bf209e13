import { type Answer, post } from "./call.ts";
import { expectRefused, ok } from "./host-token.ts";
import type { ReachableServer } from "./server.ts";

export const ACTION = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] };
export const MANUAL = { manual: {}, context: { agent: { prompt: "look around" } } };

/**
 * Returns calls of the operations on workflows, as the server's administrator unless another token
 * is given.
 */
export function workflowCalls(server: Pick<ReachableServer, "url" | "token">) {
  const call = (operation: string, body: unknown, token = server.token) =>
    post(server, operation.includes("/") ? operation : `WorkflowService/${operation}`, body, token);
  const create = (body: object = {}, token?: string) =>
    call("CreateWorkflow", { name: "Nightly", action: ACTION, ...body }, token);
  const update = (workflowId: string, body: object, token?: string) =>
    call("UpdateWorkflow", { workflowId, ...body }, token);
  return {
    call,
    create,
    update,
    get: (workflowId: string, token?: string) => call("GetWorkflow", { workflowId }, token),
    created: async (body?: object, token?: string): Promise<Answer["body"]> =>
      (await ok(create(body, token))).workflow,
    updated: async (workflowId: string, body: object, token?: string): Promise<Answer["body"]> =>
      (await ok(update(workflowId, body, token))).workflow,
    /** Expects CreateWorkflow and UpdateWorkflow to reject these fields. */
    async refuses(body: object, status: number, reason: string, message?: RegExp): Promise<void> {
      expectRefused(await create(body), status, reason, message);
      const { id } = (await ok(create())).workflow;
      expectRefused(await update(id, body), status, reason, message);
    },
  };
}

export type WorkflowCalls = ReturnType<typeof workflowCalls>;
