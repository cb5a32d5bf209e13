import { expect } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import { type Answer, post, reasonOf } from "./call.ts";
import { withServerData } from "./member.ts";
import type { ReachableServer } from "./server.ts";

/** The service of the operations on host tokens. */
export const SERVICE = "RunnerConfigurationService";

/**
 * Returns calls of the operations on host tokens, as the server's administrator unless another
 * token is given.
 */
export async function hostTokenCalls(server: ReachableServer) {
  const call = (operation: string, body: unknown, token = server.token) =>
    post(server, operation, body, token);
  const newRunner = async (name: string): Promise<string> =>
    (await ok(call("RunnerService/CreateRunner", { name }))).runner.runnerId;
  const runnerId = await newRunner("In the attic");
  const create = (body: object, token?: string) =>
    call(
      `${SERVICE}/CreateHostAuthenticationToken`,
      { runnerId, host: `${v7()}.example.org`, token: "value", ...body },
      token,
    );
  return {
    /** The runner that tokens are created for by default. */
    runnerId,
    newRunner,
    call,
    create,
    created: async (body: object, token?: string) => (await ok(create(body, token))).token,
    get: (id: string, token?: string) => call(`${SERVICE}/GetHostAuthenticationToken`, { id }, token),
    update: (id: string, body: object, token?: string) =>
      call(`${SERVICE}/UpdateHostAuthenticationToken`, { id, ...body }, token),
    remove: (id: string, token?: string) => call(`${SERVICE}/DeleteHostAuthenticationToken`, { id }, token),
    /** Lists tokens and returns their ids. */
    async list(filter: object, token?: string): Promise<string[]> {
      const request = { pagination: { pageSize: 100 }, filter };
      const { tokens } = await ok(call(`${SERVICE}/ListHostAuthenticationTokens`, request, token));
      return tokens.map(({ id }: { id: string }) => id);
    },
  };
}

export type HostTokenCalls = Awaited<ReturnType<typeof hostTokenCalls>>;

/** Returns the body of a response and expects success. */
export async function ok(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect([status, body]).toEqual([200, body]);
  return body;
}

export function expectRefused(answer: Answer, status: number, reason: string, message?: RegExp): void {
  expect([answer.status, reasonOf(answer)]).toEqual([status, reason]);
  if (message) expect(answer.body.message).toMatch(message);
}

/** Returns the audit rows and event kinds of one resource, oldest first. */
export function auditTrailOf(server: ReachableServer, id: string) {
  return withServerData(server, async (store) => {
    const rows = await builderOf(store.reader)
      .selectFrom("audit_log")
      .select(["operation", "diff", "packed_diff", "actor_id", "subject_type"])
      .where("subject_id", "=", id)
      .orderBy("sequence")
      .execute();
    const events = await builderOf(store.reader)
      .selectFrom("event")
      .select("kind")
      .where("resource_id", "=", id)
      .orderBy("sequence")
      .execute();
    return {
      rows: rows.map(({ packed_diff, diff, ...row }) => ({
        ...row,
        diff: JSON.parse(diffOf({ diff, packed_diff })),
      })),
      kinds: events.map(({ kind }) => kind),
    };
  });
}
