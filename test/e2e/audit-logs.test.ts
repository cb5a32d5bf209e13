import { userInfo } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let user: string;
let runners: string[];
let startTime: string;
beforeAll(async () => {
  server = await startHostedServer();
  await addOrganization(server, "Another");
  user = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body.subject.id;
  // From the newest entry on: what the first start did is before.
  startTime = (await entries({}))[0].createdAt;
  runners = [];
  for (const name of ["attic", "cellar", "garden"]) {
    runners.push((await post(server, "RunnerService/CreateRunner", { name })).body.runner.runnerId);
  }
  await post(server, "RunnerService/DeleteRunner", { runnerId: runners[0], force: true });
});
afterAll(stopAll);

async function entries(filter: object, pageSize = 100) {
  const { body } = await post(server, "EventService/ListAuditLogs", { filter, pagination: { pageSize } });
  return body.entries;
}
const operations = async (filter: object): Promise<string[]> =>
  (await entries(filter)).map(
    ({ action, subjectType }: { action: string; subjectType: string }) =>
      `${action.replace("service.v1.", "")} ${subjectType.replace("RESOURCE_TYPE_", "")}`,
  );

describe("the audit trail", () => {
  test("tells who did what to which resource, newest first, with a hash", async () => {
    const all = await entries({});
    const numbers = all.map(({ sequence }: { sequence: string }) => Number(sequence));
    expect(numbers).toEqual(Array.from({ length: all.length }, (_, index) => all.length - index));
    const created = all.find(
      ({ subjectId, subjectType }: Record<string, string>) =>
        subjectId === runners[1] && subjectType === "RESOURCE_TYPE_RUNNER",
    );
    expect(created).toMatchObject({
      actorId: user,
      actorPrincipal: "PRINCIPAL_USER",
      action: "service.v1.RunnerService/CreateRunner",
      kind: "AUDIT_LOG_ENTRY_KIND_RESOURCE_CHANGE",
      reason: "",
    });
    expect(created.changes).toContainEqual({ path: "name", before: "null", after: '"cellar"' });
    const paths = created.changes.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(paths.toSorted());
    expect(Buffer.from(created.hash, "base64")).toHaveLength(32);
    expect(JSON.stringify(all)).not.toMatch(/cr_[a-z]{3}_\w/);
  });

  test("names the operating system's user for the operator, and no principal", async () => {
    const first = (await entries({ actorPrincipals: ["PRINCIPAL_UNSPECIFIED"] })).at(-1);
    expect(first).toMatchObject({
      actorId: `operator:${userInfo().username}`,
      actorPrincipal: "PRINCIPAL_UNSPECIFIED",
      action: "chartroom serve",
      sequence: "1",
    });
  });

  test("is filtered by actor, kind of actor, resource, kind of resource and action", async () => {
    expect(await operations({ actorIds: [user], subjectTypes: ["RESOURCE_TYPE_RUNNER"] })).toEqual([
      "RunnerService/DeleteRunner RUNNER",
      "RunnerService/CreateRunner RUNNER",
      "RunnerService/CreateRunner RUNNER",
      "RunnerService/CreateRunner RUNNER",
    ]);
    expect(await operations({ subjectIds: [runners[0]?.toUpperCase()] })).toEqual([
      "RunnerService/DeleteRunner RUNNER",
      "RunnerService/CreateRunner RUNNER",
    ]);
    expect(await operations({ actions: ["service.v1.RunnerService/DeleteRunner"] })).toEqual([
      "RunnerService/DeleteRunner RUNNER",
      "RunnerService/DeleteRunner TOKEN",
    ]);
    expect(await operations({ actorPrincipals: ["PRINCIPAL_USER"], subjectIds: [user] })).toEqual([]);
    expect(await operations({ subjectTypes: ["RESOURCE_TYPE_UNSPECIFIED"] })).toEqual([]);
    expect(await operations({ actions: ["nothing"] })).toEqual([]);
  });

  test("is filtered by time: the start is part of it, the end is not", async () => {
    const all = await entries({});
    const at = all[3].createdAt;
    const since = await entries({ from: at });
    const until = await entries({ to: at });
    expect(since.length).toBeGreaterThan(3);
    // As instants: a whole second has no fraction in its text.
    const isSince = ({ createdAt }: { createdAt: string }) => Date.parse(createdAt) >= Date.parse(at);
    expect(since.every(isSince)).toBe(true);
    expect(until.some(isSince)).toBe(false);
    expect(since.length + until.length).toBe(all.length);
    expect(await entries({ from: startTime, to: startTime })).toEqual([]);
  });

  test("comes in pages that repeat and leave out nothing while entries are added", async () => {
    const all = await entries({});
    const seen: string[] = [];
    let token = "";
    do {
      const { body } = await post(server, "EventService/ListAuditLogs", {
        pagination: { pageSize: 3, token },
      });
      seen.push(...body.entries.map(({ id }: { id: string }) => id));
      token = body.pagination.nextToken;
      await post(server, "RunnerService/CreateRunner", { name: "another" });
    } while (token !== "");
    expect(seen).toEqual(all.map(({ id }: { id: string }) => id));
  });

  test("comes the oldest first where that is asked for, in pages that go on there", async () => {
    const sort = { field: "created_at", order: "SORT_ORDER_ASC" };
    const page = async (token: string) =>
      (await post(server, "EventService/ListAuditLogs", { sort, pagination: { pageSize: 2, token } })).body;
    const numbers = ({ entries: found }: { entries: { sequence: string }[] }) =>
      found.map(({ sequence }) => Number(sequence));
    const first = await page("");
    expect(numbers(first)).toEqual([1, 2]);
    expect(numbers(await page(first.pagination.nextToken))).toEqual([3, 4]);
    const other = await post(server, "EventService/ListAuditLogs", {
      sort: { order: "SORT_ORDER_DESC" },
      pagination: { pageSize: 2, token: first.pagination.nextToken },
    });
    expect([other.status, reasonOf(other)]).toEqual([400, "PAGE_TOKEN_INVALID"]);
    const unknown = await post(server, "EventService/ListAuditLogs", { sort: { field: "action" } });
    expect([unknown.status, reasonOf(unknown)]).toEqual([400, "VALUE_UNUSABLE"]);
  });

  test("answers one entry by its id, in either letter case, and none of another organization", async () => {
    const [newest] = await entries({}, 1);
    const get = (auditLogEntryId: string, token?: string) =>
      post(server, "EventService/GetAuditLog", { auditLogEntryId }, token);
    const found = await get(newest.id.toUpperCase());
    expect([found.status, found.body]).toEqual([200, { entry: newest }]);
    const { token } = await addOrganization(server, "A third");
    const elsewhere = await get(newest.id, token);
    expect([elsewhere.status, reasonOf(elsewhere)]).toEqual([404, "NOT_FOUND"]);
    const absent = await get("019b0000-0000-7000-8000-000000000000");
    expect([absent.status, reasonOf(absent)]).toEqual([404, "NOT_FOUND"]);
  });

  test("refuses a page token of another filter", async () => {
    const { body } = await post(server, "EventService/ListAuditLogs", { pagination: { pageSize: 1 } });
    const answer = await post(server, "EventService/ListAuditLogs", {
      pagination: { pageSize: 1, token: body.pagination.nextToken },
      filter: { actorIds: [user] },
    });
    expect([answer.status, reasonOf(answer)]).toEqual([400, "PAGE_TOKEN_INVALID"]);
  });
});
