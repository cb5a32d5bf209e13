import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { isStream } from "../harness/call-stream.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { everyOperation, type NamedOperation } from "./every-operation.ts";
import { withId } from "./id-fields.ts";
import { withPlaceholders } from "./placeholders.ts";
import { makeWorld, type World } from "./world.ts";

let ours: ReachableServer;
let theirs: Pick<ReachableServer, "url" | "token" | "dataDir">;
let ourWorld: World;
let theirWorld: World;
let theirRows: Record<string, unknown>;
beforeAll(async () => {
  // Leases of the worlds hold as long as the test goes on.
  ours = await startHostedServer({ args: ["--lease-duration", "3600"] });
  const { url, dataDir } = ours;
  theirs = { url, dataDir, token: (await addOrganization(ours, "Another organization")).token };
  ourWorld = await makeWorld(ours);
  theirWorld = await makeWorld(theirs);
  theirRows = await everyRow(theirs);
});
afterAll(stopAll);

const operations = everyOperation();

describe.each(operations)("%s", (name, operation) => {
  // The id of an invite is a secret, which anyone who has it may use: test/e2e/membership.test.ts.
  const paths = Object.entries(operation.ids).filter(([, kind]) => kind !== "invite");
  const answerTo = async (path: string, id: string) => {
    const answer = await post(
      ours,
      name,
      withId(operation.method.input, operation.request(ourWorld), path, id),
      operation.token?.(ourWorld),
    );
    return { status: answer.status, body: answer.body, type: answer.header.get("content-type") };
  };

  if (paths.length === 0) {
    test("names no resource, and answers from the caller's own organization", async () => {
      // A stream without a place to begin at has nothing to send.
      const request = isStream(name) ? operation.request(ourWorld) : {};
      const answer = await post(ours, name, request, operation.token?.(ourWorld));
      expect(JSON.stringify(answer.body)).not.toContain(theirWorld.organization);
    });
    return;
  }

  test.each(paths)("tells nothing of another organization's resource in %s", async (path, kind) => {
    const absent = await answerTo(path, v7());
    const foreign = await answerTo(path, theirWorld[kind]);
    expect(withPlaceholders(foreign)).toEqual(withPlaceholders(absent));
    if (operation.built) expectNothing(name, path, kind, foreign);
  });
});

/** What an absent id leads to, by its place in the request. */
function expectNothing(
  name: string,
  path: string,
  kind: string,
  { status, body }: Pick<Answer, "status" | "body">,
): void {
  if (body.totalCount !== undefined) {
    expect([status, body]).toMatchObject([200, { successfulCount: "0", failedCount: "0", totalCount: "0" }]);
  } else if (path.startsWith("filter.") && kind !== "organization") {
    const lists = Object.values(body).filter(Array.isArray);
    expect([status, lists]).toEqual([200, [[]]]);
    expect(body.count ?? { value: 0 }).toMatchObject({ value: 0 });
    expect(body.pagination.nextToken).toBe("");
  } else if (path.startsWith("resourceTypeFilters[].")) {
    // The stream only tells that it has left out everything that there is.
    const { organization: resourceId } = ourWorld;
    expect([status, body]).toMatchObject([200, { operation: "RESOURCE_OPERATION_UNSPECIFIED", resourceId }]);
  } else if (path === "leaseId") {
    expect([status, body.code]).toEqual([409, "aborted"]);
  } else if (path === "reports[].finish.leaseId") {
    // Progress and end name the same lease.
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
  } else if (path.endsWith("[].leaseId") || path === "reports[].progress.leaseId") {
    const [{ error }] = body.results ?? body.renewals;
    expect([status, error.detail.reason]).toEqual([200, "ERROR_REASON_LEASE_LOST"]);
  } else if (path.startsWith("reports[].interests[].")) {
    const [{ error }] = body.results;
    expect(error.message).toMatch(/ names no (sub-agent of the run|environment of the organization)$/);
  } else if (path === "lease.environmentClassIds[]") {
    expect([status, body.works]).toEqual([200, []]);
  } else if (path === "environmentClassIds[]") {
    // Classes of nobody, or of another runner, are no work that this one could take.
    expect([status, body]).toEqual([200, { works: [] }]);
  } else if (path.startsWith("projects[]")) {
    expect([status, body.failedProjects[0].index]).toEqual([200, 0]);
    expect(body.failedProjects[0].error).toMatch(/^(project|environment class|user) not found$/);
  } else if (kind === "session" && body.environment) {
    // A session is whatever its environments say it is; no resource has the id.
    expect([status, body.environment.metadata.sessionId]).toEqual([200, theirWorld.session]);
  } else if (path === "integrationId") {
    // An integration is the business of the user who made the credential; the id is only passed on.
    expect([status, body.token.integrationId]).toEqual([200, theirWorld.integration]);
  } else if (path === "agentId" && body.workflow) {
    // An agent is looked up when it runs; until then the id is only kept.
    expect([status, body.workflow.spec.agentId]).toEqual([200, theirWorld.agent]);
  } else if (path.startsWith("interests[].")) {
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
    expect(body.message).toMatch(/ names no (sub-agent of the run|environment of the organization)$/);
  } else if (path.endsWith("deciders.userIds[]")) {
    // Nobody of the organization is named in its place, so that too few could decide.
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
    expect(body.message).toMatch(/ needs (1|2) of the users that it names, .* and (0|1) can decide$/);
  } else if (path.startsWith("triggers[].pullRequest.")) {
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
    expect(body.message).toMatch(/^this server has no (webhook|integration) resources: leave \w+ unset$/);
  } else if (path === "userId" && status === 400) {
    // No matter who it is, it is another than the subject given with it.
    expect(body.message).toBe("userId and subject name different subjects: leave userId out");
  } else if (path === "userId" && (kind === "user" || name === "OrganizationService/LeaveOrganization")) {
    expect([status, body.code]).toEqual([403, "permission_denied"]);
  } else {
    expect([status, body.code]).toEqual([404, "not_found"]);
    expect(body.message).toMatch(/^[a-z ]+ not found$/);
  }
}

describe("a page token", () => {
  const lists = operations.filter(
    ([, { built, refusal, method }]) =>
      built && refusal === undefined && method.input.fields.some(({ name }) => name === "pagination"),
  );

  test.each(lists)("of %s opens no other organization's list", async (name, operation) => {
    const page = async (server: Pick<ReachableServer, "url" | "token">, world: World, token: string) => {
      const request = { ...operation.request(world), pagination: { pageSize: 1, token } };
      return post(server, name, request);
    };
    const { nextToken } = (await page(ours, ourWorld, "")).body.pagination;
    expect(nextToken).not.toBe("");
    expect((await page(ours, ourWorld, nextToken)).status).toBe(200);
    const refused = await page(theirs, theirWorld, nextToken);
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      400,
      "invalid_argument",
      "PAGE_TOKEN_INVALID",
    ]);
  });
});

test("all of this left the other organization's rows as they were", async () => {
  const rows = await everyRow(theirs);
  expect(rows).toEqual(theirRows);
  const text = JSON.stringify(rows);
  const seen = Object.entries(ourWorld).filter(([kind, id]) => kind !== "session" && text.includes(id));
  expect(seen).toEqual([]);
});

/** Everything that an organization can list, complete, but for when a token was last used. */
async function everyRow(server: Pick<ReachableServer, "url" | "token">): Promise<Record<string, unknown>> {
  const rows: Record<string, unknown> = {};
  for (const [name, operation] of operations) {
    if (!operation.built || !isWholeList(operation)) continue;
    const pages: unknown[] = [];
    for (let token: string | undefined = ""; token !== undefined; ) {
      const { body }: Answer = await post(server, name, { pagination: { pageSize: 100, token } });
      const { pagination, ...page } = body;
      pages.push(page);
      token = pagination.nextToken || undefined;
    }
    rows[name] = JSON.parse(JSON.stringify(pages), (key, value) => (key === "lastUsed" ? undefined : value));
  }
  expect(Object.keys(rows)).toEqual(expect.arrayContaining(["ProjectService/ListProjects"]));
  return rows;
}

/** A list of an organization, and not of what belongs to one of its resources. */
function isWholeList({ name, ids }: NamedOperation): boolean {
  return name.includes("/List") && Object.keys(ids).every((path) => path.startsWith("filter."));
}
