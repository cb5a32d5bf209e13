import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { createExpansion } from "../../../src/jobs/hosts/execution-expansion.ts";
import { createSourceControl, type SourceControl } from "../../../src/scm/source-control.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { type ScmHost, startScmHost } from "../../harness/scm-host.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { type AtWork, action, actionOf, runnerOf, type Workflows, workflowsOf } from "./running-workflow.ts";

const SHIPS = 5;

let host: ScmHost;
beforeAll(async () => {
  host = await startScmHost({ kind: "github" });
  for (let index = 0; index < SHIPS; index += 1) host.addRepository(`fleet/ship-${index}`);
});
afterAll(() => host.stop());

let testStore: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
let tokenId: string;
let control: SourceControl;
let draining: AbortController;
let expand: () => Promise<void>;
beforeEach(async () => {
  testStore = openTestStore();
  const { store, keys, clock } = testStore;
  caller = await testStore.createOrganization("harbour");
  workflows = workflowsOf(testStore, caller);
  runner = await runnerOf(testStore, caller);
  tokenId = await credential(host.token);
  draining = new AbortController();
  control = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  expand = createExpansion({ store, keys, scm: control, now: () => clock.now, draining: draining.signal });
});
afterEach(() => testStore.close());

async function credential(token: string): Promise<string> {
  const { configuration } = servicesOf(testStore, caller);
  const request = { runnerId: runner.runnerId, host: host.host, token };
  const answer = await configuration.createHostAuthenticationToken(request);
  return answer.token?.id ?? "";
}

/** Starts a workflow over what a search finds; the id of its execution. */
async function start(repoSearchString = "ship", maxTotal = 100): Promise<string> {
  const context = { repositories: { repoSelector: { repoSearchString, scmHost: host.host } } };
  const workflowId = await workflows.make({
    triggers: [{ manual: {}, context }],
    action: action(1, maxTotal),
  });
  return (await workflows.start(workflowId)).id;
}

const statusOf = async (id: string) => (await workflows.execution(id)).status;

test("a search makes one action for each repository, in the host's order", async () => {
  const id = await start();
  expect(await statusOf(id)).toMatchObject({ phase: Phase.PENDING, pendingActionCount: 0 });
  expect(await runner.lease()).toEqual([]);
  await expand();
  expect(await statusOf(id)).toMatchObject({ phase: Phase.PENDING, pendingActionCount: SHIPS, warnings: [] });
  const names = (await workflows.actions(id)).map(({ metadata }) => metadata?.actionName);
  expect(names).toEqual(["ship-0", "ship-1", "ship-2", "ship-3", "ship-4"]);
  const [work] = await runner.lease();
  const spec = work && actionOf(work).environment?.spec?.content?.initializer?.specs[0]?.spec;
  expect(spec).toMatchObject({ case: "git", value: { remoteUri: `${host.url}/fleet/ship-0.git` } });
  const asked = host.requests.length;
  await expand();
  expect([host.requests.length, (await workflows.actions(id)).length]).toEqual([asked, SHIPS]);
});

test("the credential of the executor is read for it, which the record tells", async () => {
  await start();
  await expand();
  const { audit } = await testStore.history(caller);
  const read = audit.filter(
    ({ subject_id, operation }) => subject_id === tokenId && operation === "job/executions",
  );
  expect(read).toHaveLength(1);
  expect(JSON.stringify(audit)).not.toContain(host.token);
});

test("what is past the limit is left out, with a warning that counts it", async () => {
  for (const [limit, leftOut] of [
    [SHIPS + 1, undefined],
    [SHIPS, undefined],
    [SHIPS - 1, "1"],
    [1, "4"],
  ] as const) {
    const id = await start("ship", limit);
    await expand();
    const status = await statusOf(id);
    expect(status?.pendingActionCount).toBe(Math.min(SHIPS, limit));
    expect(status?.warnings.map(({ reason, meta }) => [reason, meta.count])).toEqual(
      leftOut === undefined ? [] : [["actions_left_out", leftOut]],
    );
  }
});

test("the host is asked for one more than the limit at most, page by page", async () => {
  for (let index = 0; index < 120; index += 1) host.addRepository(`fleet/boat-${index}`);
  for (const [limit, pages] of [
    [99, 1],
    [100, 2],
  ] as const) {
    const before = host.requests.length;
    const id = await start("boat", limit);
    await expand();
    const searches = host.requests.slice(before).filter(({ target }) => target.includes("/search/"));
    expect([(await statusOf(id))?.pendingActionCount, searches.length]).toEqual([limit, pages]);
  }
});

test("a search that finds nothing completes the execution", async () => {
  const id = await start("anchor");
  await expand();
  expect(await statusOf(id)).toMatchObject({ phase: Phase.COMPLETED, failures: [] });
});

test("a host that refuses the token ends the execution with what it says", async () => {
  await credential("another token");
  const id = await start();
  await expand();
  const status = await statusOf(id);
  expect(status).toMatchObject({
    phase: Phase.COMPLETED,
    failures: [{ reason: "repository_search_failed", meta: { host: host.host } }],
  });
  expect(status?.failureMessage).toContain(host.host);
  expect((await workflows.execution(id)).metadata?.finishedAt).toBeDefined();
  const row = await builderOf(testStore.store.reader)
    .selectFrom("workflow_execution")
    .select("failed")
    .executeTakeFirst();
  expect(row?.failed).toBe(1);
});

test("a host that is away is asked again after ten seconds, and given up after five minutes", async () => {
  const away = { status: 503 };
  const id = await start();
  host.fail(away);
  await expand();
  expect((await statusOf(id))?.phase).toBe(Phase.PENDING);
  const asked = host.requests.length;
  testStore.clock.now += 9_999;
  await expand();
  expect(host.requests.length).toBe(asked);
  testStore.clock.now += 1;
  await expand();
  expect((await statusOf(id))?.pendingActionCount).toBe(SHIPS);

  const other = await start();
  testStore.clock.now += 299_999;
  host.fail(away);
  await expand();
  expect((await statusOf(other))?.phase).toBe(Phase.PENDING);
  testStore.clock.now += 10_000;
  host.fail(away);
  await expand();
  expect((await statusOf(other))?.failures.map(({ reason }) => reason)).toEqual(["repository_search_failed"]);
});

test("a cancelled execution is not searched for", async () => {
  const id = await start();
  await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
  const asked = host.requests.length;
  await expand();
  expect([host.requests.length, await statusOf(id)]).toMatchObject([asked, { phase: Phase.STOPPED }]);
});

test("one that is cancelled during the search gets no actions", async () => {
  const id = await start();
  const { store, keys, clock } = testStore;
  const scm = {
    async searchRepositories(search: Parameters<typeof control.searchRepositories>[0]) {
      const found = await control.searchRepositories(search);
      await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
      return found;
    },
  };
  await createExpansion({ store, keys, scm, now: () => clock.now, draining: draining.signal })();
  expect([await statusOf(id), await workflows.actions(id)]).toMatchObject([{ phase: Phase.STOPPED }, []]);
});

test("a credential or an executor that is gone by then ends the execution", async () => {
  const { configuration } = servicesOf(testStore, caller);
  const id = await start();
  await configuration.deleteHostAuthenticationToken({ id: tokenId });
  await expand();
  expect((await statusOf(id))?.failures).toMatchObject([
    { reason: "credential_missing", meta: { host: host.host } },
  ]);
  await credential(host.token);
  const other = await start();
  await testStore.store.write({ id: "test", principal: 0 }, "test", ({ db, now }) =>
    builderOf(db).updateTable("member").set({ left_at: now }).execute(),
  );
  await expand();
  const row = await builderOf(testStore.store.reader)
    .selectFrom("workflow_execution")
    .select("progress")
    .where("id", "=", other)
    .executeTakeFirst();
  expect(JSON.parse(row?.progress ?? "{}").failures).toMatchObject([
    { reason: "executor_unfit", meta: { executor_id: caller.subject.id } },
  ]);
});

test("a server that drains leaves the search to its next start", async () => {
  const id = await start();
  host.fail("hang");
  const asked = host.requests.length;
  const run = expand();
  while (host.requests.length === asked) await new Promise((resolve) => setImmediate(resolve));
  draining.abort();
  await run;
  expect(await statusOf(id)).toMatchObject({ phase: Phase.PENDING, failures: [] });
});

test("an organization whose host is away keeps no other's executions waiting, however many it has", async () => {
  const away = "127.0.0.1:1";
  const { configuration } = servicesOf(testStore, caller);
  await configuration.createHostAuthenticationToken({ runnerId: runner.runnerId, host: away, token: "t" });
  const context = { repositories: { repoSelector: { repoSearchString: "ship", scmHost: away } } };
  const workflowId = await workflows.make({ triggers: [{ manual: {}, context }], action: action(1, 1) });
  for (let started = 0; started < 110; started += 1) await workflows.start(workflowId);
  const asked: string[] = [];
  const { store, keys, clock } = testStore;
  const watched: Pick<SourceControl, "searchRepositories"> = {
    searchRepositories: (request) => {
      asked.push(request.host);
      return control.searchRepositories(request);
    },
  };
  const expandAll = createExpansion({
    store,
    keys,
    scm: watched,
    now: () => clock.now,
    draining: draining.signal,
  });
  const neighbour = await testStore.createOrganization("yard");
  const theirs = workflowsOf(testStore, neighbour);
  const other = await runnerOf(testStore, neighbour, "south");
  await servicesOf(testStore, neighbour).configuration.createHostAuthenticationToken({
    runnerId: other.runnerId,
    host: host.host,
    token: host.token,
  });
  const search = { repositories: { repoSelector: { repoSearchString: "ship", scmHost: host.host } } };
  const id = (
    await theirs.start(
      await theirs.make({ triggers: [{ manual: {}, context: search }], action: action(1, 100) }),
    )
  ).id;
  await expandAll();
  expect((await theirs.execution(id)).status?.pendingActionCount).toBe(SHIPS);
  expect(asked.filter((each) => each === away)).toHaveLength(8);
  await expandAll();
  expect(asked.filter((each) => each === away)).toHaveLength(16);
});
