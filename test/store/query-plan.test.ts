import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { type CompiledQuery, Kysely } from "kysely";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { EventDeliveryState } from "#gen/service/v1/event_subscription_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  findDeliveryPage,
  findOldestDeliveries,
  findUnsent,
  removeDeliveriesByIds,
} from "../../src/store/access/event-subscription/event-delivery.ts";
import {
  findDueSubscriptions,
  findSubscriptionPage,
} from "../../src/store/access/event-subscription/event-subscription.ts";
import { findEnded, findPastCount } from "../../src/store/access/retention/ended.ts";
import { removeParts } from "../../src/store/access/retention/parts.ts";
import { findHolders } from "../../src/store/access/retention/removable.ts";
import { findHidden } from "../../src/store/access/retention/removal.ts";
import { findContinuation, findEarlierParts, wholeOutput } from "../../src/store/agent/agent-conversation.ts";
import { findLastSeenId, findUnseenInput, hasUnseenInput } from "../../src/store/agent/agent-delivery.ts";
import { findAgentExecutionPage } from "../../src/store/agent/agent-execution-list.ts";
import { findQueuedInputs } from "../../src/store/agent/agent-input.ts";
import { findInputPage, findReviewPage } from "../../src/store/agent/agent-input-list.ts";
import { findDueTimers } from "../../src/store/agent/agent-interest.ts";
import { findOutput } from "../../src/store/agent/agent-output.ts";
import { countReviewDrafts, findReviewDraftPage } from "../../src/store/agent/agent-review-draft.ts";
import {
  findApprovalsOfToolCall,
  findExpiredApprovals,
  findPendingApprovalIds,
  findPendingApprovals,
} from "../../src/store/approval/approval.ts";
import { findApprovalPage } from "../../src/store/approval/approval-list.ts";
import { findEnvironmentPage } from "../../src/store/environment/environment-list.ts";
import { type FoundGroup, findGroupByName, findGroupPage } from "../../src/store/identity/group.ts";
import {
  findGroupMembership,
  findMembershipPage,
  findMembershipsOf,
} from "../../src/store/identity/group-membership.ts";
import {
  findGroupsWithExecutions,
  findRoleAssignmentPage,
  findRoleOn,
  findRoleOnExecution,
} from "../../src/store/identity/role-assignment.ts";
import { findPrebuildPage } from "../../src/store/project/prebuild-list.ts";
import { findProjectPage } from "../../src/store/project/project-list.ts";
import type { ProjectPage } from "../../src/store/project/project-page.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { findAuditLogPage } from "../../src/store/record/audit-log.ts";
import { findClaimable } from "../../src/store/runner/claimable-work.ts";
import { findHeldGroups, findHeldNeeds, findLongWaits } from "../../src/store/runner/held-work.ts";
import { countHeldAgents, findIdleLeases, findIdleLeasesOf } from "../../src/store/runner/work-slot.ts";
import type { Schema } from "../../src/store/schema.ts";
import { StableSqliteDialect } from "../../src/store/sqlite/dialect.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import {
  allCandidates,
  indexedCandidates,
  isSelective,
  textCandidates,
} from "../../src/store/sqlite/search/project-candidates.ts";
import { collect, countMatching, findPage } from "../../src/store/sqlite/search/project-rows.ts";
import { type Handle, SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import { findDuePullRequests } from "../../src/store/workflow/pull-request/pull-request.ts";
import { findPullRequestPage } from "../../src/store/workflow/pull-request/pull-request-list.ts";
import { findOpenExecutionIds } from "../../src/store/workflow/workflow-execution.ts";
import {
  findActionOutputPage,
  findActionPage,
  findExecutionPage,
} from "../../src/store/workflow/workflow-execution-list.ts";
import { findOutputsOfActions } from "../../src/store/workflow/workflow-output.ts";
import { removeTriggerEvents } from "../../src/store/workflow/workflow-trigger-event.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { ANY_PROJECT } from "./project/any-project.ts";

let made: TestStore;
let raw: Database.Database;
let queries: CompiledQuery[];
let db: Kysely<Schema>;
beforeEach(() => {
  made = openTestStore();
  raw = new Database(join(made.dataDir, DATABASE_FILE), { readonly: true });
  raw.function("in_time", () => 1);
  queries = [];
  db = new Kysely<Schema>({
    dialect: new StableSqliteDialect({ database: raw }),
    log: ({ query }) => void queries.push(query),
  });
});
afterEach(async () => {
  raw.close();
  await made.close();
});

/** How the engine carries out each query that was made. */
const plans = () =>
  queries.map(({ sql, parameters }) =>
    raw
      .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
      .all(...parameters)
      .map(({ detail }) => detail),
  );

const scope = { organizationId: "01900000-0000-7000-8000-000000000001" };

test("work is found by its kind and class in their turn, whatever else waits", async () => {
  const { organizationId } = await made.createOrganization("harbour");
  const claimant = {
    organizationId,
    runnerIds: ["r"] as const,
    kinds: [WorkKind.AGENT],
    environmentClassIds: ["c"],
    keeps: 2,
  };
  await insertHeldWork(organizationId, "w", 2);
  expect(await findClaimable(db, claimant, made.clock.now, 8)).toHaveLength(1);
  await findHeldGroups(db);
  await findLongWaits(db, made.clock.now, 100);
  const key = "organization_id=? AND kind=? AND environment_class_id=?";
  const [needs, open, held, groups, waits] = plans();
  expect(needs?.filter((line) => line.includes(" work"))).toEqual([
    "SEARCH work USING INDEX work_held_by_needs (organization_id=?)",
    "SEARCH work USING INDEX work_held_by_needs (organization_id=? AND needs>?)",
  ]);
  for (const [plan, way] of [
    [open, `SEARCH work USING INDEX work_open (${key})`],
    [held, `SEARCH work USING INDEX work_held_by_needs (${key.replace(" AND", " AND needs=? AND")})`],
  ] as const) {
    expect(plan?.filter((line) => line.includes(" work "))).toEqual([way, way]);
    expect(plan?.filter((line) => line.includes("TEMP B-TREE"))).toEqual([]);
  }
  expect(groups?.[0]).toBe("SCAN work USING INDEX work_held_by_needs");
  expect(waits).toEqual(["SEARCH work USING INDEX work_waiting (waiting_since>? AND waiting_since<?)"]);
});

test("a runner reads no work that it may not have, however much is held for others", async () => {
  const { organizationId } = await made.createOrganization("harbour");
  for (let at = 0; at < 300; at++) await insertHeldWork(organizationId, `w${at}`, at % 2 === 0 ? 2 : 6);
  const claim = (keeps: number) =>
    findClaimable(
      db,
      { organizationId, runnerIds: ["r"], kinds: [WorkKind.AGENT], environmentClassIds: ["c"], keeps },
      made.clock.now,
      8,
    );
  expect(await claim(0)).toEqual([]);
  expect(readRows()).toBe(0);
  expect(await findHeldNeeds(db, { organizationId })).toEqual([2, 6]);
  queries.length = 0;
  // One row for each set that work needs, and one for each that is given.
  expect(await claim(4)).toEqual([]);
  expect(readRows()).toBe(2);
  queries.length = 0;
  expect(await claim(3)).toHaveLength(8);
  expect(readRows()).toBe(2 + 8);
});

/** Runs the queries that were made once more, and returns how many rows of work that nobody holds they look at. */
function readRows(): number {
  let rows = 0;
  raw.function("counted", (_id) => {
    rows++;
    return 1;
  });
  for (const { sql, parameters } of queries)
    raw
      .prepare(sql.replaceAll('"leased_by" is null', '"leased_by" is null and counted("id") = 1'))
      .all(...parameters);
  return rows;
}

async function insertHeldWork(organizationId: string, id: string, needs: number): Promise<void> {
  const held = { id, kind: WorkKind.AGENT, subject_id: id, group_id: "g", needs, turn: 1, not_before: 0 };
  const unset = { account_id: null, runner_id: null, leased_by: null, instance_id: null, expires_at: null };
  await made.store.write(SYSTEM, "test", (tx) =>
    builderOf(tx.db)
      .insertInto("work")
      .values({
        ...held,
        ...unset,
        organization_id: organizationId,
        environment_class_id: "c",
        attempt: 0,
        fence: 0,
        stop: 0,
        idle_since: null,
        waiting_since: null,
      })
      .execute(),
  );
}

test("agents that could give their slots back are found among those alone, and those of a runner by its leases", async () => {
  await findIdleLeases(db);
  await findIdleLeasesOf(db, scope, "r", 100);
  await countHeldAgents(db, scope, "r");
  expect(plans()).toEqual([
    ["SCAN work USING COVERING INDEX work_idle"],
    ["SEARCH work USING INDEX work_idle (organization_id=? AND leased_by=? AND idle_since>?)"],
    ["SEARCH work USING INDEX work_by_holder (leased_by=?)"],
  ]);
});

test("rows of the audit trail are found by their actor or subject alone, and sorted by the index", async () => {
  const filter = {
    actorIds: [],
    actorPrincipals: [],
    subjectTypes: undefined,
    subjectIds: [],
    actions: ["o"],
    startMs: undefined,
    endMs: undefined,
  };
  const order = { direction: "desc", after: undefined } as const;
  for (const narrow of [{}, { actorIds: ["a"] }, { subjectIds: ["s"] }])
    await findAuditLogPage(db, scope, { ...filter, ...narrow }, order, 10);
  expect(plans()).toEqual([
    ["SEARCH audit_log USING INDEX sqlite_autoindex_audit_log_2 (organization_id=?)"],
    ["SEARCH audit_log USING INDEX audit_log_by_actor (actor_id=?)"],
    ["SEARCH audit_log USING INDEX audit_log_by_subject (subject_id=?)"],
  ]);
});

test("executions that have not ended are found among those alone", async () => {
  await findOpenExecutionIds(db, scope, { executorId: "u" });
  await findOpenExecutionIds(db, scope, { workflowId: "w", triggerIndex: 0 });
  for (const plan of plans())
    expect(plan).toEqual([expect.stringContaining("INDEX workflow_execution_open (")]);
});

test("a list by phase walks along the index of each phase alone, however rare it is", async () => {
  const after = { key: 0, id: "a" };
  const executions = { ids: [], workflowIds: [], hasFailedActions: undefined, search: "" };
  const actions = { ids: [], executionIds: [], workflowIds: [] };
  const runs = {
    ids: [],
    agentIds: [],
    projectIds: [],
    environmentIds: [],
    creatorIds: [],
    sessionIds: [],
    roles: [],
    annotations: {},
    reader: undefined,
  };
  const environments = {
    runnerIds: [],
    creatorIds: [],
    projectIds: [],
    runnerKinds: [],
    createdBefore: undefined,
    search: "",
    sessionIds: [],
    archived: false,
  };
  const phases = [1, 3];
  for (const from of [undefined, after]) {
    await findExecutionPage(db, scope, { ...executions, phases }, "desc", from, 26);
    await findActionPage(db, scope, { ...actions, phases }, from, 26);
    await findAgentExecutionPage(db, scope, { ...runs, phases }, from, 26);
    const order = { field: "id", direction: "asc" } as const;
    await findEnvironmentPage(db, scope, { ...environments, phases }, order, from, 26);
  }
  const walks = plans().filter((plan) => plan.join().includes("_by_phase"));
  // Two phases of four tables, from the beginning and from a place; nothing is sorted.
  expect(walks).toHaveLength(16);
  for (const plan of walks) {
    expect(plan).toEqual([
      expect.stringMatching(
        /^SEARCH (workflow_execution|workflow_action|agent_execution|environment) USING (COVERING )?INDEX \1_by_phase \(organization_id=\? AND phase=\?( AND id[<>]\?)?\)$/,
      ),
    ]);
  }
  queries = [];
  await findExecutionPage(
    db,
    scope,
    { ...executions, phases: [], hasFailedActions: true },
    "desc",
    after,
    26,
  );
  expect(plans()[0]?.join()).toContain(
    "INDEX workflow_execution_with_failed_actions (organization_id=? AND id<?)",
  );
});

test("the outputs of an execution are found by the execution, however many others there are", async () => {
  await findOutputsOfActions(db, scope, "e", { withFailed: false });
  await findActionOutputPage(db, scope, ["e"], undefined, 26);
  await findActionOutputPage(db, scope, ["e"], { key: 0, id: "a" }, 26);
  for (const plan of plans()) expect(plan.join()).toContain("(execution_id=?");
});

test("what an idle stream of inputs looks for is found by the run, and due timers by their time", async () => {
  const id = "e" as Handle<"agent_execution">;
  await findQueuedInputs(db, id);
  await findUnseenInput(db, id, 7);
  await hasUnseenInput(db, id);
  await findLastSeenId(db, id, 1);
  await findOutput(db, wholeOutput(id), 7, 32);
  await findInputPage(db, id, { includePast: false, after: undefined, limit: 26 });
  const ofRun =
    /^SEARCH agent_(in|out)put USING ((COVERING )?INDEX agent_input_in_order|PRIMARY KEY) \(execution_id=\?/;
  for (const plan of plans()) {
    expect(plan).toHaveLength(1);
    expect(plan[0]).toMatch(ofRun);
  }
  queries = [];
  await findDueTimers(db, made.clock.now, 100);
  expect(plans()[0]?.[0]).toContain("INDEX agent_interest_by_time (fires_at<?)");
});

test("a conversation is found run by run, and what goes on with a run by its id", async () => {
  await findEarlierParts(db, scope, { id: "e", sequence: 7, isFork: false, origins: 0 });
  await findContinuation(db, scope, "environment", "e" as Handle<"agent_execution">);
  const reads = plans().map((plan) => plan.filter((step) => step.includes("agent_execution")));
  expect(reads).toEqual([
    Array.from({ length: 2 }, () =>
      expect.stringMatching(
        /^SEARCH agent_execution USING INDEX sqlite_autoindex_agent_execution_1 \(id=\?\)$/,
      ),
    ),
    [
      expect.stringMatching(
        /^SEARCH agent_execution USING INDEX agent_execution_by_earlier \(earlier_id=\?\)$/,
      ),
    ],
  ]);
});

test("what a run waits for is found by the run, a list of approvals by its state, and what expires by its time", async () => {
  await findPendingApprovals(db, scope, { agentExecutionId: "e" });
  await findPendingApprovalIds(db, scope, ["e", "f"]);
  await findApprovalsOfToolCall(db, scope, "e", "call");
  for (const plan of plans())
    expect(plan[0]).toMatch(
      /^SEARCH approval USING INDEX \S+ \(agent_execution_id=\?( AND tool_call_id=\?)?\)$/,
    );
  queries = [];
  await findPendingApprovals(db, scope, { actionId: "a" });
  expect(plans()[0]?.[0]).toMatch(/^SEARCH approval USING INDEX \S+ \(action_id=\?\)$/);
  queries = [];
  const filter = { states: [1], agentExecutionIds: [], workflowExecutionIds: [], reader: undefined };
  await findApprovalPage(db, scope, filter, { key: 0, id: "a" }, 26);
  expect(plans()[0]).toEqual([
    expect.stringContaining("approval_by_phase (organization_id=? AND phase=? AND id<?)"),
  ]);
  queries = [];
  await findExpiredApprovals(db, made.clock.now, 100);
  expect(plans()[0]).toEqual([expect.stringContaining("INDEX approval_by_expiry (expires_at<?)")]);
});

test("groups are found by organization, id and name, memberships by group and subject", async () => {
  const group = { id: "g" } as FoundGroup;
  const after = { key: 0, id: "a" };
  await findGroupPage(db, scope, { ids: [], isManaged: undefined, search: "" }, after, 26);
  await findGroupByName(db, scope, "Releasers");
  await findMembershipPage(db, scope, group, "", after, 26);
  await findGroupMembership(db, scope, "g", create(SubjectSchema, { id: "s", principal: 2 }));
  await findMembershipsOf(db, scope, "s");
  const [page, named, members, member, held] = plans();
  expect(page).toEqual([expect.stringContaining("member_group_by_id (organization_id=? AND id>?)")]);
  expect(named).toEqual([
    expect.stringContaining("member_group_by_name (organization_id=? AND name_folded=?)"),
  ]);
  expect(members?.[0]).toContain("group_membership_by_id (group_id=? AND id>?)");
  expect(members?.join()).not.toMatch(/SCAN|TEMP B-TREE/);
  expect(member?.[0]).toMatch(
    /group_membership_by_subject \(organization_id=\? AND subject_id=\? AND group_id=\?\)/,
  );
  expect(held?.[0]).toContain("group_membership_by_subject (organization_id=? AND subject_id=?)");
});

test("what is shared with groups is found by the resource and by the group, and sorted by the index", async () => {
  const after = { key: 0, id: "a" };
  await findRoleAssignmentPage(db, scope, "r", after, 26);
  await findRoleOn(db, scope, "s", "r");
  await findRoleOnExecution(db, scope, "s", "e");
  await findGroupsWithExecutions(db, scope, "s");
  const [page, role, ofRun, groups] = plans();
  expect(page?.[0]).toContain("role_assignment_by_resource (resource_id=?)");
  for (const plan of [role, ofRun]) {
    expect(plan?.join()).toContain("role_assignment_by_resource (resource_id=?)");
    expect(plan?.join()).toContain("group_membership_by_group (group_id=? AND subject_id=?)");
    expect(plan?.join()).not.toMatch(/SCAN/);
  }
  expect(groups?.join()).toContain("group_membership_by_subject (organization_id=? AND subject_id=?)");
  expect(groups?.join()).toContain("role_assignment_by_group (group_id=? AND resource_type=?)");
  queries = [];
  const any = { ids: [], agentIds: [], projectIds: [], environmentIds: [], creatorIds: [] };
  const reader = { id: "s", principal: 1, groupIds: ["g", "h"] };
  const runs = { ...any, sessionIds: [], roles: [], annotations: {}, phases: [], reader };
  for (const from of [undefined, after]) await findAgentExecutionPage(db, scope, runs, from, 26);
  const walks = plans().map((plan) =>
    plan.filter((step) => !step.includes("child") && !/^CORRELATED/.test(step)),
  );
  const range = (index: number) => (index < 3 ? "" : " AND resource_id<?");
  walks.forEach((walk, index) => {
    if (index % 3 === 0)
      expect(walk[0]).toContain("agent_execution_by_creator (organization_id=? AND creator_id=?");
    else
      expect(walk).toEqual([
        `SEARCH role_assignment USING COVERING INDEX role_assignment_by_group (group_id=? AND resource_type=?${range(index)})`,
        "SEARCH agent_execution USING INDEX agent_execution_by_id (organization_id=? AND id=?)",
      ]);
    expect(walk.join()).not.toContain("TEMP B-TREE");
  });
  expect(walks).toHaveLength(6);
});

test("drafts of reviews are found by their run and author, and reviews by their run", async () => {
  const author = { ...scope, subject: { id: "a", principal: 1 } };
  const run = "e" as Handle<"agent_execution">;
  await findReviewDraftPage(db, author, run, { key: 0, id: "d" }, 26);
  await countReviewDrafts(db, author, run);
  await findReviewPage(db, run, 3, 26);
  const [drafts, counted, reviews] = plans();
  expect(drafts).toEqual([
    expect.stringContaining("agent_review_draft_by_execution (execution_id=? AND author_id=? AND id>?)"),
  ]);
  expect(counted).toEqual([
    expect.stringContaining("agent_review_draft_by_execution (execution_id=? AND author_id=?)"),
  ]);
  expect(reviews).toEqual([expect.stringMatching(/INDEX \S+ \(execution_id=\? AND number>\?\)$/)]);
});

test("pull requests are found by what opened them, by their repository and by their time", async () => {
  const none = {
    executionIds: [],
    actionIds: [],
    environmentIds: [],
    agentExecutionIds: [],
    states: [],
    reader: undefined,
  };
  const page = async (filter: object) => {
    queries = [];
    await findPullRequestPage(db, scope, { ...none, ...filter }, { key: 0, id: "a" }, 26);
    return plans()[0]?.[0];
  };
  expect(await page({})).toContain("pull_request_by_id (organization_id=? AND id>?)");
  expect(await page({ states: [1] })).toContain("pull_request_by_id (organization_id=? AND id>?)");
  expect(await page({ executionIds: ["e"] })).toContain(
    "pull_request_by_execution (execution_id=? AND id>?)",
  );
  expect(await page({ environmentIds: ["e"] })).toContain(
    "pull_request_by_environment (environment_id=? AND id>?)",
  );
  expect(await page({ agentExecutionIds: ["a"] })).toContain(
    "pull_request_by_run (agent_execution_id=? AND id>?)",
  );
  expect(await page({ actionIds: ["a", "b"] })).toMatch(
    /^SEARCH pull_request USING INDEX \S+ \(action_id=\?\)$/,
  );
  queries = [];
  await findDuePullRequests(db, made.clock.now, 100);
  expect(plans()[0]).toEqual([expect.stringContaining("INDEX pull_request_by_poll (next_poll_at")]);
});

test("what is to be sent to subscribers is found by what is unsent, and ledgers by their subscription", async () => {
  await findDueSubscriptions(db, made.clock.now, 100);
  await findUnsent(db, scope, "s", EventDeliveryState.PENDING, 1);
  const query = { subscriptionId: "s", states: [] };
  await findDeliveryPage(db, scope, query, { key: 0, id: "m" }, 26);
  await findOldestDeliveries(db, scope, "s", "a", 500);
  await findSubscriptionPage(db, scope, { key: 0, id: "a" }, 26);
  const [due, unsent, page, oldest, subscriptions] = plans();
  expect(due?.[0]).toMatch("INDEX event_subscription_due (due_at<?)");
  expect(due?.join("\n")).toMatch(
    "event_delivery USING COVERING INDEX event_delivery_unsent (subscription_id=?",
  );
  expect(unsent).toEqual([
    expect.stringContaining("INDEX event_delivery_unsent (subscription_id=? AND state=?)"),
  ]);
  expect(page).toEqual([
    expect.stringContaining("INDEX event_delivery_by_subscription (subscription_id=? AND id<?)"),
  ]);
  expect(oldest).toEqual([
    expect.stringContaining("INDEX event_delivery_by_subscription (subscription_id=? AND id>?)"),
  ]);
  expect(subscriptions).toEqual([
    expect.stringContaining("INDEX event_subscription_by_id (organization_id=? AND id>?)"),
  ]);
});

test("a page of prebuilds is read along their index", async () => {
  const any = { states: undefined, isManualListed: true, isScheduledListed: true };
  const filter = { ...any, projectIds: [], creatorIds: [], executorIds: [] };
  await findPrebuildPage(db, scope, filter, { key: 0, id: "a" }, 26);
  const [page] = plans();
  expect(page).toEqual([expect.stringContaining("INDEX prebuild_by_id (organization_id=? AND id<?)")]);
});

test("a later page of projects begins where the last one ended, in both orders and directions", async () => {
  const after = { key: 1, id: "a" };
  const page = { filter: ANY_PROJECT, after, limit: 26, countLimit: undefined };
  const store = {
    reader: db,
    projectSearch: { find: () => Promise.reject(new Error("a list without a filter is no search")) },
  };
  const signal = () => new AbortController().signal;
  for (const direction of ["asc", "desc"] as const) {
    await findProjectPage(store, scope, { ...page, order: { field: "id", direction } }, signal);
    await findProjectPage(store, scope, { ...page, order: { field: "popularity", direction } }, signal);
    const way = direction === "asc" ? ">" : "<";
    const id = direction === "asc" ? "<" : ">";
    const index = "SEARCH project USING INDEX project_by";
    expect(plans()).toEqual([
      [`${index}_id (organization_id=? AND id${way}?)`],
      [`${index}_popularity (organization_id=? AND popularity=? AND id${id}?)`],
      [`${index}_popularity (organization_id=? AND popularity${way}?)`],
    ]);
    queries = [];
  }
});

test("what a filter has an index for leads to projects, and its rows are tested one by one", async () => {
  const filter = {
    ...ANY_PROJECT,
    creatorIds: ["c"],
    remoteUris: ["r"],
    runnerIds: ["r"],
    annotations: { a: "b" },
  };
  const leads = indexedCandidates(db, scope, filter);
  leads.unshift(await textCandidates(db, "shi", [1, 2], 1));
  for (const { projects } of leads) await projects.select("project.id").execute();
  const byId = "SEARCH project USING COVERING INDEX sqlite_autoindex_project_1 (id=?)";
  const by = (table: string, rest: string) => `SEARCH ${table} USING COVERING INDEX ${table}_by_${rest}`;
  expect(plans().map((plan) => plan.map((line) => line.replace(/ INDEX \d+:.*/, "")))).toEqual([
    [
      "SCAN project_search VIRTUAL TABLE",
      "SEARCH project USING COVERING INDEX project_by_search_row (search_row=?)",
    ],
    ["SEARCH project USING INDEX project_by_creator (organization_id=? AND creator_id=?)"],
    [by("project_remote", "uri (organization_id=? AND remote_uri=?)"), byId],
    [
      by("project_environment_class", "runner (runner_id=?)"),
      "LIST SUBQUERY 1",
      "SEARCH runner USING INDEX sqlite_autoindex_runner_1 (id=?)",
      byId,
    ],
    [by("project_annotation", "pair (organization_id=? AND key=? AND value=?)"), byId],
  ]);
});

test("what few texts lead to is sorted by an index alone, behind the last page too", async () => {
  const few = await isSelective(db, await textCandidates(db, "shi", [1, 2], 1), 1);
  if (!few) throw new Error("an index without texts led to more than one");
  queries = [];
  for (const field of ["id", "popularity"] as const) {
    for (const after of [undefined, { key: 1, id: "a" }]) {
      const order = { field, direction: "desc" } as const;
      await collect(
        db,
        scope,
        { filter: ANY_PROJECT, order, after, limit: 1, countLimit: undefined },
        few,
        1,
      );
    }
  }
  const all = plans().map((plan) => plan.map((line) => line.replace(/ INDEX \d+:.*/, "")));
  expect(all).toHaveLength(4);
  for (const plan of all) {
    expect(plan.slice(0, 2)).toEqual([
      "SCAN found VIRTUAL TABLE",
      expect.stringContaining("SEARCH project USING COVERING INDEX project_by_search_row (search_row=?"),
    ]);
  }
});

test("what leads to projects goes on leading where filters and the page's place are tested too", async () => {
  const text = await textCandidates(db, "shi", [1, 2], 1);
  const few = await isSelective(db, text, 1);
  if (!few) throw new Error("an index without texts led to more than one");
  queries = [];
  for (const creatorIds of [[], ["c"], ["c", "d"]]) {
    for (const field of ["id", "popularity"] as const) {
      const page: ProjectPage = {
        filter: { ...ANY_PROJECT, search: "shi", creatorIds },
        order: { field, direction: "asc" },
        after: { key: 1, id: "a" },
        limit: 1,
        countLimit: 10,
      };
      await collect(db, scope, page, few, 1);
      await findPage(db, scope, page, text);
      await countMatching(db, scope, page, text);
    }
  }
  const all = plans().flat();
  expect(all.filter((line) => line.includes("SEARCH project "))).toEqual(
    Array(18).fill("SEARCH project USING INDEX project_by_search_row (search_row=?)"),
  );
  queries = [];
  const order = { field: "id", direction: "asc" } as const;
  const after = { key: 0, id: "a" };
  const page = { filter: ANY_PROJECT, order, after, limit: 1, countLimit: undefined };
  await findPage(db, scope, page, allCandidates(db, scope));
  expect(plans()).toEqual([
    ["SEARCH project USING COVERING INDEX project_by_id (organization_id=? AND id>?)"],
  ]);
});

test("what retention removes is found by its keys, whatever their number", async () => {
  // Of a write they use nothing else.
  const tx = { db } as Pick<WriteTransaction, "db"> as WriteTransaction;
  const of = "a" as Handle<"workflow_execution">;
  const parts = [
    { table: "step_log", columns: ["action_id", "attempt", "step_index", "start"], key: ["a", 1, 0, 0] },
    { table: "workflow_action", columns: ["id"], key: ["a"] },
    { table: "agent_output", columns: ["execution_id", "sequence"], key: ["a", 1] },
  ];
  // Only read here: the engine plans them and refuses to carry them out.
  for (const { table, columns, key } of parts)
    for (const rows of [[{ key, bytes: 0 }], Array(3).fill({ key, bytes: 0 })])
      await expect(removeParts(tx, { of, table, columns, rows }, rows)).rejects.toThrow(/readonly/);
  await expect(removeTriggerEvents(tx, scope, ["a", "b"])).rejects.toThrow(/readonly/);
  await expect(removeDeliveriesByIds(tx, scope, ["a"])).rejects.toThrow(/readonly/);
  expect(new Set(queries.map((query) => query.sql)).size).toBe(5);
  const ways = plans().map(([way]) => way);
  expect([...new Set(ways)]).toEqual([
    "SEARCH step_log USING PRIMARY KEY (action_id=? AND attempt=? AND step_index=? AND start=?)",
    expect.stringMatching(
      /^SEARCH workflow_action USING .*INDEX sqlite_autoindex_workflow_action_1 \(id=\?\)$/,
    ),
    "SEARCH agent_output USING PRIMARY KEY (execution_id=? AND sequence=?)",
    "SEARCH workflow_trigger_event USING COVERING INDEX workflow_trigger_event_by_id (organization_id=? AND id=?)",
    "SEARCH event_delivery USING INDEX sqlite_autoindex_event_delivery_1 (id=?)",
  ]);
});

test("what has ended is found by its end, and what retention has taken away by that", async () => {
  const after = { id: "a", endedAt: 1 };
  for (const table of ["workflow_execution", "agent_execution"] as const) {
    await findEnded(db, scope, { table, before: 1 }, after, 10);
    await findEnded(db, scope, { table, before: 1, upTo: { id: "z", workflowId: undefined } }, after, 10);
    await findPastCount(db, scope, table, undefined, 10);
    await findHidden(db, scope, table, 10);
  }
  await findPastCount(db, scope, "workflow_execution", "w", 10);
  await findHolders(db, scope, ["a"]);
  const ways = plans().map((plan) => plan.filter((line) => /^(SEARCH|SCAN)/.test(line)).join("; "));
  const found = (table: string, end: string, byEnd: string) => [
    `SEARCH ${table} USING INDEX ${byEnd} (organization_id=? AND ${end}>? AND ${end}<?)`,
    `SEARCH ${table} USING INDEX ${table}_by_id (organization_id=? AND id>? AND id<?)`,
    `SEARCH ${table} USING INDEX ${table}_by_id (organization_id=?)`,
    `SEARCH ${table} USING INDEX ${table}_being_removed (organization_id=?)`,
  ];
  expect(ways).toEqual([
    ...found("workflow_execution", "finished_at", "workflow_execution_by_end"),
    ...found("agent_execution", "stopped_at", "agent_execution_by_stop"),
    "SEARCH workflow_execution USING INDEX workflow_execution_by_workflow (workflow_id=?)",
    "SEARCH agent_execution USING INDEX agent_execution_by_earlier (earlier_id=?); " +
      "SEARCH run USING INDEX sqlite_autoindex_agent_execution_1 (id=?); " +
      "SEARCH other USING INDEX agent_execution_by_environment (environment_id=?)",
  ]);
});
