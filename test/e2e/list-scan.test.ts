import { join } from "node:path";
import { fromJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { type CompiledQuery, Kysely } from "kysely";
import { SearchTooLong } from "../../src/domain/error.ts";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { implementations } from "../../src/implementations.ts";
import { createPullRequestHosts } from "../../src/pull-request-hosts.ts";
import { createSourceControl } from "../../src/scm/source-control.ts";
import type { Schema } from "../../src/store/schema.ts";
import { StableSqliteDialect } from "../../src/store/sqlite/dialect.ts";
import { DATABASE_FILE, type SqliteStore } from "../../src/store/sqlite/open.ts";
import { listing, searching } from "../../src/store/sqlite/search/searching.ts";
import type { Store } from "../../src/store/store.ts";
import { type ListRequest, listRequests } from "../harness/list-requests.ts";
import { startHostedServer, stopAll } from "../harness/server.ts";
import { contextOf, openTestStore, type TestStore, userOf } from "../harness/test-store.ts";
import { workDependencies } from "../services/runner/work-service.ts";
import { OPERATIONS } from "./operations.ts";
import { makeWorld, type World } from "./world.ts";

/** Lists that test no rows, and why. */
const WITHOUT_A_SEARCH: Readonly<Record<string, string>> = {
  "ProjectService/ListProjectEnvironmentClasses": "they are in the body of one project",
  "ProjectService/ListProjects": "without a filter it reads one page along an index",
};

/** Lists that are not made in pieces when they take too long, and what bounds them. */
const WITHOUT_PIECES: Readonly<Record<string, string>> = {
  "AgentReviewService/ListAgentReviewDrafts": "at most ten of one person for one run",
  "AgentReviewService/ListAgentReviews": "of one run, along its index",
  "AgentService/ListAgentInputs": "of one run, along its index",
  "AgentService/ListAgents": "at most 100 of one organization, and the operator registers the others",
  "EnvironmentService/ListEnvironmentConnections": "at most 2,000 of one environment, along their key",
  "GroupService/ListRoleAssignments": "at most 25 of one resource, along their index",
  "ProjectService/ListProjectEnvironmentClasses": "they are in the body of one project",
  "ProjectService/ListProjects": "indexes lead to few; what is left takes a second of a million rows",
  "UserService/ListPersonalAccessTokens": "of one user, along their index, and nothing to filter by",
  "UserService/ListSessions": "of one user, along their index, and nothing to filter by",
};

/** Rows by their whole key, and the few sub-agents, approvals and changes of a run; the first are sorted then. */
const BY_KEY =
  /^SEARCH \w+ USING (COVERING )?INDEX (sqlite_autoindex_\w+_1 \((organization_id|execution_id|environment_id|id)=\?\)|sqlite_autoindex_approval_2 \(agent_execution_id=\?\)|agent_execution_by_parent \(parent_id=\?\))$|^USE TEMP B-TREE FOR ORDER BY$/;

let world: World;
let made: TestStore;
let raw: Database.Database;
let caller: Caller;
let operations: ReturnType<typeof implementations>;
/** What the main thread read, what it began to read of a list, and how many times another thread was asked. */
let read: CompiledQuery[] = [];
let attempts = 0;
let searches = 0;
/** Whether the first search takes too long. */
let isSlow = false;
beforeAll(async () => {
  const server = await startHostedServer();
  world = await makeWorld(server);
  await server.stop();
  made = openTestStore({ dataDir: server.dataDir });
  raw = new Database(join(server.dataDir, DATABASE_FILE), { readonly: true });
  const { organization: organizationId, account: accountId, token: tokenId, user } = world;
  caller = userOf({ organizationId, accountId, tokenId }, user);
  const reader = new Kysely<Schema>({
    dialect: new StableSqliteDialect({ database: raw }),
    log: ({ query }) => void read.push(query),
  });
  const search = ((...args) => {
    searches += 1;
    if (isSlow && searches === 1) return Promise.reject(new SearchTooLong(0));
    return made.search(...args);
  }) as SqliteStore["search"];
  // As if each query tested more rows than the main thread does.
  const attempt = () => {
    attempts += 1;
    return undefined;
  };
  const store: Store = {
    ...made.store,
    reader,
    projectSearch: { find: (scope, page, signal) => search("projects", scope, page, signal) },
    searcher: (scope) => searching({ search }, scope),
    lister: (scope) => listing({ search }, { db: reader, attempt }, scope),
  };
  const scm = createSourceControl({ allowPrivateAddresses: false, plainHttpHosts: new Set() });
  operations = implementations({
    ...workDependencies(made),
    store,
    hosts: createPullRequestHosts(scm),
    eventHosts: new Set(),
  });
});
afterAll(async () => {
  raw.close();
  await made.close();
  await stopAll();
});

/** How the engine finds the rows of what the main thread read. */
const plans = () =>
  read.flatMap(({ sql, parameters }) =>
    raw
      .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
      .all(...parameters)
      .map(({ detail }) => detail),
  );

async function ask({ operation, method, fields }: ListRequest): Promise<void> {
  const base = OPERATIONS[operation]?.request(world);
  const request = fromJson(method.input, { ...base, ...fields });
  const service = operations.find(({ service: { typeName } }) => typeName === method.parent.typeName);
  const implemented = service?.methods[method.localName];
  if (implemented?.kind !== "unary") throw new Error(`${operation} is not implemented`);
  await implemented.impl(request, contextOf(method, caller));
}

const asksForText = ({ fields: { filter } }: ListRequest) =>
  typeof filter === "object" && filter !== null && "search" in filter;

test.each([...Map.groupBy(listRequests(), ({ operation }) => operation)])(
  "%s tests rows outside the main thread, whatever it is asked",
  async (operation, requests) => {
    for (const request of requests) {
      [read, attempts, searches] = [[], 0, 0];
      await ask(request);
      if (operation in WITHOUT_A_SEARCH && !("filter" in request.fields)) continue;
      const others = plans().filter((plan) => !BY_KEY.test(plan));
      expect([request.name, others]).toEqual([request.name, []]);
      expect([request.name, searches > 0 || read.length === 0]).toEqual([request.name, true]);
      // To find a text takes longer than to test other values.
      if (asksForText(request)) expect([request.name, attempts]).toEqual([request.name, 0]);
    }
  },
);

test.each([...Map.groupBy(listRequests(), ({ operation }) => operation)])(
  "%s is answered, however long it takes as a whole",
  async (operation, requests) => {
    isSlow = true;
    const refused: string[] = [];
    for (const request of requests) {
      searches = 0;
      await ask(request).catch((error) => {
        if (!(error instanceof SearchTooLong)) throw error;
        refused.push(request.name);
      });
    }
    isSlow = false;
    expect(operation in WITHOUT_PIECES ? [] : refused).toEqual([]);
  },
);
