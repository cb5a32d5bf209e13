import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { filesIn } from "../harness/stored-texts.ts";

/** Bytes of a character at most: U+0000 is stored as three characters of three bytes each. */
const BYTES = 9;

/** Size above which a B-tree of pages of 8 KiB takes no entry, in bytes. */
const ENTRY_BYTES = 2_704;

/** Bytes of an entry besides its texts: its header, numbers, and what comes before each text. */
const OTHER_BYTES = 64;

/** An id that a server makes, in ASCII; not less than a hash in hexadecimal. */
const ID_BYTES = 36;

/** Largest sizes of the indexed texts that are no ids of the server, in bytes, with what bounds them. */
const BOUNDS: Readonly<Record<string, number>> = {
  "audit_export.target": 4,
  // checkPerson: 254 characters.
  "account.email": 254 * BYTES,
  // newAgent: 80 characters.
  "agent.name": 80 * BYTES,
  // StartSubagentRequest.key: 128 characters.
  "agent_execution.start_key": 128 * BYTES,
  // stepKey: two numbers and StartStepAgentRequest.output_key, 50 characters.
  "agent_execution.step_key": 32 + 50 * BYTES,
  // StartAgentRequest.annotations: keys of 128 characters.
  "agent_execution_annotation.key": 128 * BYTES,
  // AgentInput.id: 128 characters.
  "agent_input.input_id": 128 * BYTES,
  "agent_input_image.input_id": 128 * BYTES,
  // Interest.id: 128 characters.
  "agent_interest.interest_id": 128 * BYTES,
  // foldKey: AgentOutputBlock.ToolCall.id or Question.id, 128 characters, with two before it.
  "agent_output.fold_key": 128 * BYTES + 2,
  // A SHA-256 in hexadecimal digits, and RequestApprovalRequest.tool_call_id, 128 characters.
  "approval.digest": 64,
  "approval.tool_call_id": 128 * BYTES,
  // Names that the program knows.
  "fact.name": 64,
  // readSignInProviders: 508 characters of ASCII; readClaims: 255.
  "provider_identity.issuer": 508,
  "provider_identity.subject": 255,
  // The text of an address, and the ids of rows.
  "device_login.network": 64,
  "sign_in_attempt.key": 128,
  "migration.name": 64,
  "pending_stop.mode": 16,
  "pending_stop.target": 16,
  "prebuild.state": 16,
  "token.kind": 32,
  // CreateHostAuthenticationTokenRequest.host: 253 characters.
  "host_token.host": 253 * BYTES,
  // placeOfPullRequest: a host and the path of a repository, 1,024 characters of ASCII.
  "pull_request.host": 253,
  "pull_request.identity": 253 + 1 + 1_024,
  "pull_request.repository": 1_024,
  // Idempotency-Key: 255 visible characters of ASCII, with the name of an operation.
  "idempotency.key": 255,
  "idempotency.operation": 128,
  // CreateProjectRequest.annotations: keys of 128 characters.
  "project_annotation.key": 128 * BYTES,
  // An id of 256 visible characters of ASCII.
  "webhook_delivery.delivery_id": 256,
  // CreateSecretRequest.name, of ASCII.
  "secret.name": 127,
  // CreateWorkflowRequest.name: 80 characters, folded one by one.
  "workflow.sort_name": 80 * BYTES,
  // insertTriggerEvent: the hash of a key of more than 1,024 characters.
  "workflow_trigger_event.dedupe_key": 1_024,
  // 80 characters of at most 4 bytes.
  "member_group.name_folded": 320,
};

/** Expressions in indexes over texts: one that makes texts no longer. */
const EXPRESSIONS = ["COALESCE(organization_id, ''::text)"];

/** Indexes over texts of any length, which hold their hashes. */
const HASHED = {
  "project_annotation.value": "hash",
  "project_remote.remote_uri": "hash",
  "agent_execution_annotation.value": "hash",
};

let cluster: PostgresCluster;
let url: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  await (await openProcess(url)).close();
});
afterAll(() => cluster?.stop());

const catalogue = async <T>(statement: string) => (await onCluster(url, statement)).rows as T[];

/** Every column of the tables, with its type and the name of its collation. */
const COLUMNS = `select c.relname as table, a.attname as column, a.atttypid::regtype::text as type,
    coalesce(l.collname, '') as collation
  from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_collation l on l.oid = a.attcollation
  where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped`;

/** Every key of an index over a text, with the name of its collation; an expression has no column. */
const KEYS = `select i.relname as index, m.amname as method, pg_get_indexdef(i.oid, k.place::int, true) as key,
    t.relname || '.' || a.attname as column, coalesce(l.collname, '') as collation
  from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    join pg_am m on m.oid = i.relam
    cross join unnest(x.indkey::int[], x.indcollation::oid[]) with ordinality as k (number, collated, place)
    left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.number and k.number > 0
    left join pg_collation l on l.oid = k.collated
  where t.relnamespace = current_schema()::regnamespace and k.collated <> 0`;

interface Key {
  readonly index: string;
  readonly method: string;
  readonly key: string;
  readonly column: string | null;
  readonly collation: string;
}

describe("after all migrations", () => {
  test("every text is compared by its bytes, and no column has a type with an order or a form of its own", async () => {
    const columns = await catalogue<Record<"table" | "column" | "type" | "collation", string>>(COLUMNS);
    expect(columns.length).toBeGreaterThan(300);
    const others = columns.filter(({ type, collation }) =>
      type === "text" ? collation !== "C" : !["bigint", "bytea", "double precision"].includes(type),
    );
    expect(others).toEqual([]);
    const bodies = columns.filter(({ column }) => column === "body");
    expect(bodies.length).toBeGreaterThan(15);
    expect(new Set(bodies.map(({ type }) => type))).toEqual(new Set(["text"]));
  });

  test("what protects the audit trail and the events looks at no table of the session", async () => {
    const guards = await catalogue<{ name: string; config: string[] | null }>(
      `select distinct p.proname as name, p.proconfig as config from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        join pg_class c on c.oid = t.tgrelid where not t.tgisinternal and c.relname in ('audit_log', 'audit_anchor', 'event')`,
    );
    expect(guards.length).toBeGreaterThan(7);
    for (const { name, config } of guards)
      expect([name, config]).toEqual([name, ["search_path=public, pg_temp"]]);
  });

  test("every index over texts is in the order of their bytes", async () => {
    const keys = await catalogue<Key>(KEYS);
    expect(keys.length).toBeGreaterThan(100);
    expect(keys.filter(({ collation }) => collation !== "C")).toEqual([]);
  });

  test("no B-tree has a text that may be longer than it takes: each is bounded, or its hash is indexed", async () => {
    const keys = await catalogue<Key>(KEYS);
    const columns = new Set(keys.map(({ column }) => column));
    expect(Object.keys({ ...BOUNDS, ...HASHED }).filter((column) => !columns.has(column))).toEqual([]);
    expect(
      Object.fromEntries(
        keys.flatMap(({ method, column }) => (method === "btree" || !column ? [] : [[column, method]])),
      ),
    ).toEqual(HASHED);
    const trees = keys.filter(({ method }) => method === "btree");
    const expressions = trees.filter(({ column }) => column === null);
    expect(expressions.map(({ key }) => key).sort()).toEqual(EXPRESSIONS);
    const isId = (column: string) => /(\.|_)id$|\.leased_by$/.test(column);
    const names = trees.flatMap(({ column }) => column ?? []);
    expect(names.filter((column) => !isId(column) && !(column in BOUNDS))).toEqual([]);
    const sizes = new Map<string, number>();
    for (const { index, column } of trees)
      sizes.set(index, (sizes.get(index) ?? OTHER_BYTES) + (BOUNDS[column ?? ""] ?? ID_BYTES));
    expect([...sizes].filter(([, bytes]) => bytes > ENTRY_BYTES)).toEqual([]);
  });
});

test("no query of the store leaves the folding of letters to an engine", () => {
  const folder = join(import.meta.dirname, "../../src/store");
  const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|--.*/g, "");
  const files = filesIn(folder).filter((file) => /(?<!\.test)\.(ts|sql)$/.test(file));
  expect(files.length).toBeGreaterThan(100);
  const folding = files.filter((file) =>
    /\b(ilike|lower\(|upper\(|initcap\(|citext|collate nocase)/i.test(
      withoutComments(readFileSync(file, "utf8")),
    ),
  );
  expect(folding.map((file) => relative(folder, file))).toEqual([]);
});
