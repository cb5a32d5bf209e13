import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { type Answer, post } from "../harness/call.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { everyOperation, type NamedOperation } from "./every-operation.ts";
import { makeWorld, type World } from "./world.ts";

const PAGE_BYTES = 4 * 1024 * 1024;

/** Answers with a list that is no page, and what bounds them. */
const BOUNDED: Readonly<Record<string, string>> = {
  "AccountService/BlockAccount": "names of tokens, each an id",
  "OrganizationService/GetServerHealth": "figures by fixed sets of names and labels",
  "OrganizationService/PreviewOrganizationPolicies": "the fields of the policies, with ten resources each",
  "OrganizationService/PreviewRetention": "four kinds",
  "ProjectService/CreateProjects": "what the request holds: 100 projects",
  "ProjectService/UpdateProjects": "what the request names: 100 projects",
  "ResourceService/ApplyChanges": "what the request names, at most 16 MiB",
  "ResourceService/PreviewChanges": "what the request names, at most 16 MiB",
  "WorkflowService/RedeliverWorkflowTriggerEvent": "the triggers of one workflow: 10",
  "WorkflowService/PreviewWorkflow": "what the start would have: 1,000 actions",
  "WorkService/Register": "the classes of one runner, each an id",
  "WorkService/LeaseWork": "32 works, of --page-bytes together",
  "RunnerService/ParseContextURL": "ids of 100 projects",
  "WorkService/ReportWorks": "32 works, of --page-bytes together",
  "WorkService/RenewLeases": "64 leases, each a time and a flag",
  "AgentWorkService/ReportAgents": "32 results, each a time, a flag and a number",
};

const isPaged = ({ input }: NamedOperation["method"]) =>
  input.fields.some(({ name }) => name === "pagination");
const paged = everyOperation().filter(([, { method }]) => isPaged(method));
/** Without those that only a runner can answer, which the world has none for: it makes the pages, each to the contract's bound. */
const lists = paged.filter(([, { refusal }]) => refusal === undefined);

let server: HostedServer;
let world: World;
beforeAll(async () => {
  server = await startHostedServer();
  world = await makeWorld(server);
});
afterAll(stopAll);

/** The same data behind a server with other settings. */
async function restart(args: readonly string[]): Promise<void> {
  const { dataDir, token } = server;
  await server.stop();
  server = { ...(await startHostedServer({ dataDir, args })), token };
}

/** Every page of a list, of up to 100 elements each; walks end where a page token comes again. */
async function pages([name, operation]: (typeof lists)[number]): Promise<Answer["body"][]> {
  const found: Answer["body"][] = [];
  const seen = new Set<string>();
  for (let token = ""; !seen.has(token); ) {
    seen.add(token);
    const pagination = { pageSize: 100, token };
    const request = { ...operation.request(world), pagination };
    const { status, body } = await post(server, name, request, operation.token?.(world));
    expect([status, body.code]).toEqual([200, undefined]);
    found.push(body);
    token = body.pagination.nextToken;
    if (token === "") return found;
  }
  throw new Error(`${name} goes round in circles`);
}

function elements({ method }: NamedOperation, page: Answer["body"]): unknown[] {
  const field = method.output.fields.find(({ fieldKind }) => fieldKind === "list");
  return page[field?.jsonName ?? ""];
}

test("every answer with a list is a page, or says what bounds it", () => {
  const others = CONTRACT.flatMap((service) =>
    service.methods
      .filter((method) => method.methodKind === "unary" && !isPaged(method))
      .filter(({ output }) => output.fields.some(({ fieldKind }) => fieldKind === "list"))
      .map(({ name }) => `${service.name}/${name}`),
  );
  expect(Object.keys(BOUNDED).toSorted()).toEqual(others.toSorted());
});

test("every list but that of a runner's files is asked", () => {
  const others = paged.filter((each) => !lists.includes(each)).map(([name]) => name);
  expect(others).toEqual(["EnvironmentService/ListEnvironmentFiles"]);
});

describe("a page that one element fills", () => {
  const whole = new Map<string, number>();
  beforeAll(async () => {
    for (const list of lists) {
      const [page] = await pages(list);
      whole.set(list[0], elements(list[1], page).length);
    }
    await restart(["--page-bytes", "1"]);
  });

  test.each(lists)("of %s ends there, and the others follow", async (name, operation) => {
    const all = await pages([name, operation]);
    const count = whole.get(name) ?? 0;
    expect(count).toBeGreaterThan(1);
    expect(all.map((page) => elements(operation, page).length)).toEqual(Array(count).fill(1));
    expect(new Set(all.map((page) => JSON.stringify(elements(operation, page)))).size).toBe(count);
  });
});

/** Where the large text of a stored row is: a name, a command or a value. */
const LARGE: readonly (readonly [
  operation: string,
  table: string,
  column: string,
  path: string,
  bytes: number,
])[] = [
  ["WorkflowService/ListWorkflows", "workflow", "body", "metadata.description", 11_000_000],
  ["WorkflowService/ListWorkflowExecutions", "workflow_plan", "body", "action.steps.task.command", 4_000_000],
  ["WorkflowService/ListWorkflowExecutionActions", "workflow_action", "progress", "failureMessage", 5_000],
  [
    "WorkflowService/ListWorkflowExecutionOutputs",
    "workflow_action",
    "outputs",
    "values.note.stringValue",
    3_000_000,
  ],
  ["WorkflowService/ListWorkflowTriggerEvents", "workflow_trigger_event", "body", "reason", 3_000_000],
  ["AgentService/ListAgentExecutions", "agent_execution", "body", "metadata.name", 3_000_000],
  ["AgentService/ListAgentInputs", "agent_input", "body", "userInput.inputs.text.content", 3_000_000],
  ["AgentService/ListAgentOutputBlocks", "agent_output", "body", "text.content", 3_000_000],
  ["ProjectService/ListProjects", "project", "body", "metadata.name", 3_000_000],
  ["EnvironmentService/ListEnvironments", "environment", "body", "metadata.name", 1_500_000],
  ["SecurityService/ListSecurityPolicies", "security_policy", "body", "metadata.name", 3_000_000],
];

type Json = Readonly<Record<string, unknown>>;

/** Returns a value with a text at the end of a path, which may go through the last element of a list. */
function withText(value: Json, [name = "", ...rest]: readonly string[], text: string): Json {
  const inner = value[name];
  if (rest.length === 0) return { ...value, [name]: text };
  if (!Array.isArray(inner)) return { ...value, [name]: withText((inner ?? {}) as Json, rest, text) };
  return { ...value, [name]: inner.with(-1, withText(inner.at(-1), rest, text)) };
}

describe("with rows of megabytes", () => {
  beforeAll(async () => {
    const { dataDir, token } = server;
    await server.stop();
    await withRawData(dataDir, async (raw) => {
      for (const [, table, column, path, bytes] of LARGE) {
        const rows = await raw.rows<{ value: string }>(
          `select distinct ${column} as value from ${table} where ${column} is not null`,
        );
        for (const { value } of rows) {
          const larger = withText(JSON.parse(value), path.split("."), "x".repeat(bytes));
          await raw.rows(
            `update ${table} set ${column} = ? where ${column} = ?`,
            JSON.stringify(larger),
            value,
          );
        }
      }
    });
    server = { ...(await startHostedServer({ dataDir })), token };
  });

  test.each(LARGE)("%s has pages of at most 4 MiB, or of one element", async (name) => {
    const list = lists.find(([each]) => each === name);
    if (!list) throw new Error(`${name} is no list`);
    const all = await pages(list);
    for (const page of all) {
      const shown = elements(list[1], page);
      if (shown.length > 1) expect(JSON.stringify(page).length).toBeLessThanOrEqual(PAGE_BYTES);
    }
    const ids = all.flatMap((page) => elements(list[1], page).map((element) => idOf(element as Ids)));
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(ids.length);
    expect(all.length).toBeGreaterThan(1);
  });
});

type Ids = Readonly<Record<"id" | "actionId" | "sequence", string>>;

function idOf({ id, actionId, sequence }: Ids): string {
  return id ?? actionId ?? sequence;
}
