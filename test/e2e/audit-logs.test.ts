import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";

let server: TestServer;
let user: string;
let runners: string[];
let startTime: string;
beforeAll(async () => {
  server = await startServer();
  await addOrganization(server, "Another");
  user = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body.subject.id;
  // From the newest entry on: what the first start did is before.
  startTime = (await entries({}))[0].at;
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
    ({ operation, subjectType }: { operation: string; subjectType: string }) =>
      `${operation.replace("service.v1.", "")} ${subjectType.replace("RESOURCE_TYPE_", "")}`,
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
      actor: { id: user, principal: "PRINCIPAL_USER" },
      operation: "service.v1.RunnerService/CreateRunner",
      reason: "",
    });
    expect(created.changes).toContainEqual({ path: "name", before: "null", after: '"cellar"' });
    const paths = created.changes.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(paths.toSorted());
    expect(Buffer.from(created.hash, "base64")).toHaveLength(32);
    expect(JSON.stringify(all)).not.toMatch(/cr_[a-z]{3}_\w/);
  });

  test("leaves the actor unset for the operator", async () => {
    const first = (await entries({ actorPrincipals: ["PRINCIPAL_UNSPECIFIED"] })).at(-1);
    expect([first.actor, first.operation, first.sequence]).toEqual([undefined, "chartroom serve", "1"]);
  });

  test("is filtered by actor, kind of actor, resource, kind of resource and operation", async () => {
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
    expect(await operations({ operations: ["service.v1.RunnerService/DeleteRunner"] })).toEqual([
      "RunnerService/DeleteRunner RUNNER",
      "RunnerService/DeleteRunner TOKEN",
    ]);
    expect(await operations({ actorPrincipals: ["PRINCIPAL_USER"], subjectIds: [user] })).toEqual([]);
    expect(await operations({ subjectTypes: ["RESOURCE_TYPE_UNSPECIFIED"] })).toEqual([]);
    expect(await operations({ operations: ["nothing"] })).toEqual([]);
  });

  test("is filtered by time: the start is part of it, the end is not", async () => {
    const all = await entries({});
    const at = all[3].at;
    const since = await entries({ startTime: at });
    const until = await entries({ endTime: at });
    expect(since.length).toBeGreaterThan(3);
    expect(since.every((each: { at: string }) => each.at >= at)).toBe(true);
    expect(until.every((each: { at: string }) => each.at < at)).toBe(true);
    expect(since.length + until.length).toBe(all.length);
    expect(await entries({ startTime, endTime: startTime })).toEqual([]);
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

  test("refuses a page token of another filter", async () => {
    const { body } = await post(server, "EventService/ListAuditLogs", { pagination: { pageSize: 1 } });
    const answer = await post(server, "EventService/ListAuditLogs", {
      pagination: { pageSize: 1, token: body.pagination.nextToken },
      filter: { actorIds: [user] },
    });
    expect([answer.status, reasonOf(answer)]).toEqual([400, "PAGE_TOKEN_INVALID"]);
  });
});
