/**
 * The rules that the database itself holds: audit rows are never changed, event rows only pruned, and the stored bytes
 * of each organization are counted in the transaction that changes a row, by any function. The count covers what
 * callers, runners and agents can make long: texts and blobs, not columns of a fixed size, indexes, or columns that
 * repeat others for a search. The audit trail and the events are not counted: nobody can remove them.
 */

/** Counted columns of tables that name their organization. */
const OWNED: Readonly<Record<string, readonly string[]>> = {
  agent_execution: ["first_turn", "progress", "body"],
  environment: ["body"],
  environment_class: ["body"],
  host_token: ["sealed_token", "sealed_refresh_token", "body"],
  idempotency: ["response"],
  organization_policies: ["body", "origins"],
  prebuild: ["body"],
  project: ["technical_description", "used_by", "body"],
  runner: ["body"],
  security_policy: ["body"],
  service_account: ["body"],
  token: ["body"],
  workflow: ["body"],
  workflow_action: ["outputs", "body"],
  workflow_execution: ["variables", "action_failures", "action_warnings", "body"],
  workflow_trigger_event: ["payload", "body"],
};

interface Part {
  readonly columns: readonly string[];
  /** The table that names the organization, and the column that references it. */
  readonly whole: string;
  readonly key: string;
}

/** Tables of rows that belong to a row of another table; they come before those that they belong to. */
const PARTS: Readonly<Record<string, Part>> = {
  agent_input_image: { columns: ["data"], whole: "agent_execution", key: "execution_id" },
  agent_input: { columns: ["turn", "body"], whole: "agent_execution", key: "execution_id" },
  agent_output: { columns: ["body"], whole: "agent_execution", key: "execution_id" },
  step_log: { columns: ["data"], whole: "workflow_action", key: "action_id" },
  workflow_plan: { columns: ["body"], whole: "workflow_execution", key: "execution_id" },
};

const bytesOf = (columns: readonly string[], row: "old" | "new") =>
  columns.map((column) => `coalesce(octet_length(${row}.${column}), 0)`).join(" + ");

/** Returns a trigger function and its trigger. @param on such as `after insert` */
function trigger(name: string, on: string, table: string, statements: string): string {
  const result = on.startsWith("before delete") ? "old" : "new";
  return `
create function ${name}() returns trigger language plpgsql as $$ begin ${statements} return ${result}; end $$;
create trigger ${name} ${on} on ${table} for each row execute function ${name}();`;
}

/** Returns the counting triggers of a table. @param organizationOf builds the organization's id from a row */
function counting(
  table: string,
  columns: readonly string[],
  organizationOf: (row: "new" | "old") => string,
): string {
  const add = (bytes: string, row: "new" | "old") =>
    `update organization_storage set bytes = bytes + (${bytes}) where organization_id = ${organizationOf(row)};`;
  const [before, after] = [bytesOf(columns, "old"), bytesOf(columns, "new")];
  const change = `if (${after}) <> (${before}) then ${add(`(${after}) - (${before})`, "new")} end if;`;
  return [
    trigger(`${table}_is_counted_in`, "after insert", table, add(after, "new")),
    trigger(`${table}_is_counted_again`, `after update of ${columns.join(", ")}`, table, change),
    trigger(`${table}_is_counted_out`, "after delete", table, add(`-(${before})`, "old")),
  ].join("");
}

/** Returns the trigger that removes the parts of a row first: after it, nothing names their organization. */
function partsFirst(whole: string): string {
  const parts = Object.entries(PARTS).filter(([, part]) => part.whole === whole);
  const removals = parts.map(([table, { key }]) => `delete from ${table} where ${key} = old.id;`);
  return trigger(`${whole}_goes_after_its_parts`, "before delete", whole, removals.join(" "));
}

/** Returns a trigger that fails with a sentence, unless a condition holds. */
function never(name: string, on: string, table: string, sentence: string, unless = "false"): string {
  return trigger(
    name,
    on,
    table,
    `if not coalesce(${unless}, false) then raise exception '${sentence}' using errcode = 'raise_exception'; end if;`,
  );
}

const isRemoved = "not exists (select 1 from organization where id = old.organization_id)";

export const triggers = [
  never("audit_log_is_not_updated", "before update", "audit_log", "audit rows are never changed"),
  never(
    "audit_log_is_not_deleted",
    "before delete",
    "audit_log",
    "audit rows are never removed",
    `old.organization_id is not null and ${isRemoved}`,
  ),
  never("event_is_not_updated", "before update", "event", "event rows are never changed"),
  never(
    "event_is_only_pruned",
    "before delete",
    "event",
    "event rows are removed by the pruning job only",
    `${isRemoved} or exists (select 1 from pruning where pruning.organization_id = old.organization_id)`,
  ),
  trigger(
    "organization_is_counted_from",
    "after insert",
    "organization",
    "insert into organization_storage (organization_id, bytes) values (new.id, 0);",
  ),
  ...Object.entries(OWNED).map(([table, columns]) =>
    counting(table, columns, (row) => `${row}.organization_id`),
  ),
  ...Object.entries(PARTS).map(([table, { columns, whole, key }]) =>
    counting(table, columns, (row) => `(select organization_id from ${whole} where id = ${row}.${key})`),
  ),
  ...[...new Set(Object.values(PARTS).map(({ whole }) => whole))].map(partsFirst),
].join("\n");
