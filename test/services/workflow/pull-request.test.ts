import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import {
  PullRequestChecks as Checks,
  type FollowedPullRequest,
  PullRequestFollowing as Following,
} from "#gen/service/v1/pull_request_pb.js";
import { ListPullRequestsRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { createPullRequestSync } from "../../../src/jobs/hosts/pull-requests.ts";
import { createSourceControl } from "../../../src/scm/source-control.ts";
import { createWebhookReceiver } from "../../../src/services/workflow/trigger/webhook-delivery.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { kindOf } from "../../../src/store/resource-type.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { type ScmHost, type ScmHostOptions, startScmHost } from "../../harness/scm-host.ts";
import { MINUTE_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";
import { openedPullRequest } from "../../harness/webhook-payload.ts";
import { cryptography, hubSignature } from "../../harness/webhook-signing.ts";
import { servicesOf } from "../services.ts";
import {
  type AtWork,
  action,
  actionOf,
  Outcome,
  runnerOf,
  State as StepState,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

const HOUR_MS = 60 * MINUTE_MS;
const STEP = { pullRequest: { title: "Add b", description: "It was missing.", branch: "add-b" } };

let testStore: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
let host: ScmHost;
let draining: AbortController;
let follow: () => Promise<void>;

async function useHost(kind: ScmHostOptions["kind"]): Promise<void> {
  host = await startScmHost({ kind });
  testStore = openTestStore();
  const { store, keys, clock } = testStore;
  caller = await testStore.createOrganization("harbour");
  workflows = workflowsOf(testStore, caller);
  runner = await runnerOf(testStore, caller);
  await credential(host.token);
  draining = new AbortController();
  const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
  await scm.hostKind(host.host);
  follow = createPullRequestSync({
    store,
    keys,
    scm,
    now: () => clock.now,
    draining: draining.signal,
  });
}

async function stopUsing(): Promise<void> {
  await testStore.close();
  await host.stop();
}

async function credential(token: string): Promise<string> {
  const { configuration } = servicesOf(testStore, caller);
  const request = { runnerId: runner.runnerId, host: host.host, token };
  return (await configuration.createHostAuthenticationToken(request)).token?.id ?? "";
}

/** Reports that the step of an action has opened a pull request; what else the report says. */
async function report(work: Work, pullRequestUrl: string, stepIndex = 0) {
  const { leaseId, fence } = work;
  const steps = [
    { stepIndex, state: StepState.RUNNING },
    { stepIndex, state: StepState.DONE, pullRequestUrl },
  ];
  await runner.operations.reportProgress({ leaseId, fence, steps });
}

let count = 0;
/** An execution over repositories whose actions have each opened a pull request at the host. */
async function open(repositories = 1) {
  const paths = Array.from({ length: repositories }, () => {
    count += 1;
    return `team/r${count}`;
  });
  const repoUrls = paths.map((path) => host.addRepository(path));
  const context = { repositories: { repositoryUrls: { repoUrls } } };
  const workflowId = await workflows.make({
    triggers: [{ manual: {}, context }],
    action: action(repositories, repositories, STEP),
  });
  const { id: executionId } = await workflows.start(workflowId);
  for (const work of await runner.lease(repositories)) {
    const spec = actionOf(work).environment?.spec?.content?.initializer?.specs[0]?.spec;
    const remote = spec?.case === "git" ? spec.value.remoteUri : "";
    const repository = paths.find((path) => remote.endsWith(`/${path}.git`)) ?? "";
    const hosted = host.addPullRequest({ repository, branch: "add-b", base: "main", title: "Add b" });
    await report(work, hosted.url);
    await runner.finish(work, Outcome.DONE);
  }
  return { workflowId, executionId, path: paths[0] ?? "" };
}

async function list(filter: object = {}): Promise<FollowedPullRequest[]> {
  const pagination = { pageSize: 100 };
  return (await workflows.listPullRequests({ filter, pagination })).pullRequests;
}

async function only(filter: object = {}): Promise<FollowedPullRequest> {
  const [first, ...others] = await list(filter);
  if (!first || others.length > 0) throw new Error(`one pull request was expected, not ${others.length + 1}`);
  return first;
}

/** The number of requests to the host that a call brings, and how many were under a condition. */
async function asked(call: () => Promise<unknown>) {
  const before = host.requests.length;
  await call();
  const sent = host.requests.slice(before);
  return [sent.length, sent.filter(({ headers }) => headers["if-none-match"] !== undefined).length];
}

async function eventsOfPullRequests() {
  const { events } = await testStore.history(caller);
  return events.filter(({ resource_type }) => kindOf(resource_type) === ResourceType.PULL_REQUEST);
}

describe.each(["github", "gitlab", "gitea"] as const)("a pull request at a host of kind %s", (kind) => {
  beforeEach(() => useHost(kind));
  afterEach(stopUsing);

  test("is listed as soon as it is reported, and then in the state that its host reports", async () => {
    const { executionId, path } = await open();
    const reported = await only({ workflowExecutionIds: [executionId] });
    expect(reported).toMatchObject({
      workflowExecutionId: executionId,
      stepIndex: 0,
      pullRequest: {
        id: "1",
        title: "Add b",
        fromBranch: "add-b",
        state: State.OPEN,
        repository: { host: host.host, owner: "team", name: path.slice("team/".length) },
      },
      checks: Checks.UNSPECIFIED,
      following: Following.ACTIVE,
    });
    expect(reported.seenAt).toBeUndefined();
    host.changePullRequest(path, 1, { checks: { build: "pending" }, title: "Add b and c" });
    await follow();
    const read = await only();
    expect(read).toMatchObject({
      id: reported.id,
      pullRequest: { title: "Add b and c", toBranch: "main", state: State.OPEN },
      checks: Checks.PENDING,
    });
    expect(read.pullRequest?.headSha).toMatch(/^[0-9a-f]{40}$/);
    expect(read.seenAt && timestampMs(read.seenAt)).toBe(testStore.clock.now);
  });

  test("is followed while its checks turn red and green, until it is merged", async () => {
    const { path } = await open();
    const seen: unknown[] = [];
    for (const change of [
      { checks: { build: "pending" } },
      { checks: { build: "failure" } },
      { checks: { build: "success" } },
      { state: "merged" },
    ] as const) {
      host.changePullRequest(path, 1, change);
      await follow();
      const { checks, pullRequest, following } = await only();
      seen.push([Checks[checks], State[pullRequest?.state ?? 0], Following[following]]);
      testStore.clock.now += MINUTE_MS;
    }
    expect(seen).toEqual([
      ["PENDING", "OPEN", "ACTIVE"],
      ["FAILED", "OPEN", "ACTIVE"],
      ["PASSED", "OPEN", "ACTIVE"],
      ["PASSED", "MERGED", "ENDED"],
    ]);
    // Its report, and four changes.
    expect((await eventsOfPullRequests()).map(({ kind }) => kind)).toHaveLength(5);
    testStore.clock.now += 24 * HOUR_MS;
    expect(await asked(follow)).toEqual([0, 0]);
  });

  test("that did not change is asked for under that condition, and leaves no event", async () => {
    const { path } = await open();
    host.changePullRequest(path, 1, { checks: { build: "success" } });
    await follow();
    const before = await only();
    const events = (await eventsOfPullRequests()).length;
    testStore.clock.now += MINUTE_MS;
    const requests = { github: 3, gitlab: 1, gitea: 2 }[kind];
    expect(await asked(follow)).toEqual([requests, kind === "gitea" ? 0 : requests]);
    const after = await only();
    expect(after.seenAt && timestampMs(after.seenAt)).toBe(testStore.clock.now);
    expect({ ...after, seenAt: undefined }).toEqual({ ...before, seenAt: undefined });
    expect(await eventsOfPullRequests()).toHaveLength(events);
  });

  test("that was closed is followed no longer", async () => {
    const { path } = await open();
    host.closePullRequest(path, 1);
    await follow();
    expect(await only()).toMatchObject({
      pullRequest: { state: State.CLOSED },
      following: Following.ENDED,
      problem: "",
    });
  });

  test("that is not there any more is said not to be, and is not asked for again", async () => {
    await open();
    host.fail({ status: 404, body: { message: "Not Found" } });
    await follow();
    expect(await only()).toMatchObject({
      pullRequest: { state: State.OPEN },
      following: Following.STOPPED,
      problem: expect.stringContaining("answered 404"),
    });
    testStore.clock.now += 24 * HOUR_MS;
    expect(await asked(follow)).toEqual([0, 0]);
  });
});

describe("a pull request", () => {
  beforeEach(() => useHost("github"));
  afterEach(stopUsing);

  test("is asked for each minute at first, and an hour apart at last", async () => {
    await open();
    const { clock } = testStore;
    const gaps: number[] = [];
    let last = clock.now;
    await follow();
    // Half a minute at a time, as a finer clock would take long.
    for (let passed = 0; passed < 24 * HOUR_MS; passed += MINUTE_MS / 2) {
      clock.now += MINUTE_MS / 2;
      if (!(await isDue())) continue;
      const [requests = 0] = await asked(follow);
      expect(requests).toBeGreaterThan(0);
      gaps.push(clock.now - last);
      last = clock.now;
    }
    expect(gaps[0]).toBe(MINUTE_MS);
    expect(gaps.at(-1)).toBe(HOUR_MS);
    expect(gaps).toEqual(gaps.toSorted((one, other) => one - other));
    expect(gaps.length).toBeLessThan(80);
  });

  async function isDue(): Promise<boolean> {
    const rows = await builderOf(testStore.store.reader)
      .selectFrom("pull_request")
      .select("id")
      .where("next_poll_at", "<=", testStore.clock.now)
      .execute();
    return rows.length > 0;
  }

  test("says so when the host refuses the token, and stops; nothing shows the token", async () => {
    await open();
    await credential("revoked-token-of-tests");
    await follow();
    const stopped = await only();
    expect(stopped).toMatchObject({ following: Following.STOPPED });
    expect(stopped.problem).toContain("answered 401");
    testStore.clock.now += 24 * HOUR_MS;
    expect(await asked(follow)).toEqual([0, 0]);
    const { audit, events } = await testStore.history(caller);
    const recorded = JSON.stringify([audit, events, stopped.problem]);
    expect(recorded).not.toContain("revoked-token-of-tests");
    expect(recorded).not.toContain(host.token);
  });

  test("is left alone with all others of its host for as long as the host asks", async () => {
    await open(3);
    host.fail({ status: 429, headers: { "retry-after": "600" }, body: { message: "slow down" } });
    // At most four are read at the same time: all three may have been asked for already.
    await follow();
    const limited = (await list()).filter(({ problem }) => problem !== "");
    expect(limited).toMatchObject([{ following: Following.ACTIVE }]);
    expect(limited[0]?.problem).toContain("answered 429");
    testStore.clock.now += 599_000;
    expect(await asked(follow)).toEqual([0, 0]);
    testStore.clock.now += 1_000;
    const [requests] = await asked(follow);
    expect(requests).toBe(9);
    expect((await list()).map(({ problem }) => problem)).toEqual(["", "", ""]);
  });

  test("of a host that fails is asked for more and more seldom, and then no more", async () => {
    await open();
    host.fail({ status: 503, body: { message: "down" } }, { times: 1_000 });
    const { clock } = testStore;
    let readings = 0;
    for (let tries = 0; tries < 40; tries += 1) {
      const [requests = 0] = await asked(follow);
      readings += requests;
      clock.now += HOUR_MS;
    }
    expect(readings).toBe(24);
    expect(await only()).toMatchObject({
      following: Following.STOPPED,
      problem: expect.stringContaining("answered 503"),
    });
  });

  test("is not read with a credential of an executor who may act no longer", async () => {
    await open();
    await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("account")
        .set({ blocked_at: testStore.clock.now })
        .where("id", "=", caller.accountId)
        .execute(),
    );
    expect(await asked(follow)).toEqual([0, 0]);
    expect(await only()).toMatchObject({ following: Following.STOPPED, problem: expect.stringMatching(/./) });
  });

  test("is not read with the executor's credential where another set its source", async () => {
    await open();
    const stranger = [{ id: "00000000-0000-7000-8000-0000000000aa", principal: "PRINCIPAL_USER" }];
    await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("pull_request")
        .set({ source_set_by: JSON.stringify(stranger) })
        .execute(),
    );
    expect(await asked(follow)).toEqual([0, 0]);
    expect((await only()).following).toBe(Following.STOPPED);
  });

  test("without a credential says so", async () => {
    await open();
    await testStore.store.write(SYSTEM, "test", ({ db }) => builderOf(db).deleteFrom("host_token").execute());
    await follow();
    expect((await only()).problem).toBe(`the executor has no credential for ${host.host}`);
  });

  test("is read for which the audit trail tells of the credential", async () => {
    await open();
    await follow();
    const { audit } = await testStore.history(caller);
    const reads = audit.filter(({ operation }) => operation === "job/pull-requests");
    expect(reads.map(({ subject_type }) => subject_type)).toContain("host_token");
  });

  test("is stored once, however often it is reported, and goes nowhere else than to its own repository", async () => {
    const [first = "", second = ""] = [1, 2].map((n) => host.addRepository(`own/s${n}`));
    const context = { repositories: { repositoryUrls: { repoUrls: [first] } } };
    await workflows.make({ triggers: [{ manual: {}, context }], action: action(1, 1, STEP, STEP, STEP) });
    const workflowId = await workflows.make({
      triggers: [{ manual: {}, context }],
      action: action(1, 1, STEP, STEP, STEP),
    });
    await workflows.start(workflowId);
    const [work] = await runner.lease();
    if (!work) throw new Error("no work was leased");
    await report(work, `${host.url}/own/s1/pull/7`);
    await report(work, `${host.url}/own/s1/pull/7`, 1);
    await report(work, `https://evil.example.org/${second}/pulls/8`, 2);
    expect((await list()).map(({ pullRequest, stepIndex }) => [pullRequest?.id, stepIndex])).toEqual([
      ["7", 0],
      ["8", 2],
    ]);
    expect((await list()).map(({ pullRequest }) => pullRequest?.repository?.name)).toEqual(["s1", "s1"]);
  });

  test("stays due when the server stops in between", async () => {
    await open();
    const hold = Promise.withResolvers<void>();
    host.fail({ until: hold.promise });
    const run = follow();
    draining.abort(new Error("the server stops"));
    await run;
    hold.resolve();
    expect(await only()).toMatchObject({ following: Following.ACTIVE, problem: "" });
    expect(await isDue()).toBe(true);
  });

  test("is removed with its workflow's actions", async () => {
    await open();
    await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).deleteFrom("workflow_action").execute(),
    );
    expect(await list()).toEqual([]);
    await follow();
  });
});

describe("a delivery of the host", () => {
  beforeEach(() => useHost("github"));
  afterEach(stopUsing);

  /** Sends an event as the host does, to the webhook of any workflow of the organization. */
  async function deliver(event: string, payload: object) {
    const workflowId = await workflows.make();
    const { secret } = await workflows.getWorkflowWebhookSecret({ workflowId });
    const body = Buffer.from(JSON.stringify(payload));
    const receive = createWebhookReceiver({
      ...testStore.deps,
      cryptography,
      onRecordFailure: (error) => {
        throw error;
      },
    });
    const headers = { "x-github-event": event, ...hubSignature(secret, body) };
    return receive({ workflowId, headers, body, identify: async () => undefined });
  }

  /** The host's own pull request as its event has it. */
  function merged(path: string) {
    const clone_url = `${host.url}/${path}.git`;
    return openedPullRequest({
      action: "closed",
      "pull_request.number": 1,
      "pull_request.state": "closed",
      "pull_request.merged": true,
      "repository.clone_url": clone_url,
      "repository.full_name": path,
      "repository.html_url": null,
      "repository.ssh_url": null,
      "repository.git_url": null,
    });
  }

  test("about a pull request has it read at once", async () => {
    const { path } = await open();
    await follow();
    testStore.clock.now += MINUTE_MS / 2;
    expect(await asked(follow)).toEqual([0, 0]);
    host.changePullRequest(path, 1, { state: "merged" });
    await deliver("pull_request", merged(path));
    await follow();
    expect((await only()).pullRequest?.state).toBe(State.MERGED);
  });

  test("is not believed: what it says is asked of the host", async () => {
    const { path } = await open();
    await follow();
    testStore.clock.now += MINUTE_MS / 2;
    await deliver("pull_request", merged(path));
    const [requests] = await asked(follow);
    expect(requests).toBeGreaterThan(0);
    expect((await only()).pullRequest?.state).toBe(State.OPEN);
  });

  test("about the checks of its commit has it read at once, and one about another commit does not", async () => {
    const { path } = await open();
    await follow();
    const { pullRequest } = await only();
    testStore.clock.now += MINUTE_MS / 2;
    host.changePullRequest(path, 1, { checks: { build: "failure" } });
    const repository = { clone_url: `${host.url}/${path}.git` };
    await deliver("check_run", { action: "completed", check_run: { head_sha: "0".repeat(40) }, repository });
    expect(await asked(follow)).toEqual([0, 0]);
    const check_run = { head_sha: pullRequest?.headSha };
    await deliver("check_run", { action: "completed", check_run, repository });
    await follow();
    expect((await only()).checks).toBe(Checks.FAILED);
  });

  test("has one read again that was followed no longer", async () => {
    const { path } = await open();
    host.closePullRequest(path, 1);
    await follow();
    expect((await only()).following).toBe(Following.ENDED);
    host.changePullRequest(path, 1, { state: "open" });
    testStore.clock.now += MINUTE_MS;
    await deliver("pull_request", merged(path));
    await follow();
    expect(await only()).toMatchObject({
      following: Following.ACTIVE,
      pullRequest: { state: State.OPEN },
    });
  });

  test("in great numbers does not have it read more than every ten seconds", async () => {
    const { path } = await open();
    await follow();
    for (let times = 0; times < 3; times += 1) {
      await deliver("pull_request", merged(path));
      expect(await asked(follow)).toEqual([0, 0]);
    }
    testStore.clock.now += 10_000;
    await follow();
    expect(await asked(follow)).toEqual([0, 0]);
  });

  test("to another organization's workflow does not concern it", async () => {
    const { path } = await open();
    await follow();
    testStore.clock.now += MINUTE_MS / 2;
    const stranger = await testStore.createOrganization("elsewhere");
    workflows = workflowsOf(testStore, stranger);
    await deliver("pull_request", merged(path));
    expect(await asked(follow)).toEqual([0, 0]);
  });
});

describe("a list of pull requests", () => {
  beforeAll(() => useHost("github"));
  afterAll(stopUsing);

  test("has those of twenty repositories with their states, page by page, and filters them", async () => {
    const { executionId } = await open(20);
    const other = await open();
    for (let each = 0; each < 6; each += 1) await follow();
    const all = await list({ workflowExecutionIds: [executionId] });
    expect(all).toHaveLength(20);
    expect(new Set(all.map(({ pullRequest }) => pullRequest?.repository?.name)).size).toBe(20);
    expect(all.every(({ seenAt }) => seenAt !== undefined)).toBe(true);
    const path = all[3]?.pullRequest?.repository;
    host.changePullRequest(`${path?.owner}/${path?.name}`, 1, { state: "merged" });
    testStore.clock.now += MINUTE_MS;
    for (let each = 0; each < 6; each += 1) await follow();
    const merged = await only({ workflowExecutionIds: [executionId], states: [State.MERGED] });
    expect(merged.id).toBe(all[3]?.id);
    const { workflowExecutionActionId, environmentId } = merged;
    expect((await only({ workflowExecutionActionIds: [workflowExecutionActionId] })).id).toBe(merged.id);
    expect((await only({ environmentIds: [environmentId] })).id).toBe(merged.id);
    expect((await only({ workflowExecutionIds: [other.executionId] })).id).not.toBe(merged.id);

    const filter = { workflowExecutionIds: [executionId] };
    const seen: string[] = [];
    let token = "";
    do {
      const req = create(ListPullRequestsRequestSchema, { filter, pagination: { pageSize: 7, token } });
      const page = await workflows.listPullRequests(req);
      seen.push(...page.pullRequests.map(({ id }) => id));
      token = page.pagination?.nextToken ?? "";
    } while (token !== "");
    expect(seen).toEqual(all.map(({ id }) => id));
  });

  test("is empty for another organization", async () => {
    const stranger = workflowsOf(testStore, await testStore.createOrganization("elsewhere"));
    expect((await stranger.listPullRequests({})).pullRequests).toEqual([]);
  });

  test("is read four pull requests at a time, however many are due", async () => {
    await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).updateTable("pull_request").set({ next_poll_at: 0 }).execute(),
    );
    const [requests = 0] = await asked(follow);
    // A merged one takes one request in place of three.
    expect([10, 12]).toContain(requests);
  });
});
