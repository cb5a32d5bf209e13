/**
 * The stored bytes of each organization, counted by triggers in the transaction that changes a row,
 * for every source of the change: a caller, a job, a cascade or a later migration. The count covers
 * what callers, runners and agents can make long: texts and blobs, not columns of a fixed size,
 * indexes, or columns that repeat others for a search. Rows without an organization column of their
 * own are removed before the row that they belong to, while that still names it.
 *
 * The audit trail and the events are not counted: nobody can remove them.
 */
export const name = "0016-organization-storage";

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

/**
 * Tables of rows that belong to a row of another table; they come before those that they belong to.
 */
const PARTS: Readonly<Record<string, Part>> = {
  agent_input_image: { columns: ["data"], whole: "agent_execution", key: "execution_id" },
  agent_input: { columns: ["turn", "body"], whole: "agent_execution", key: "execution_id" },
  agent_output: { columns: ["body"], whole: "agent_execution", key: "execution_id" },
  step_log: { columns: ["data"], whole: "workflow_action", key: "action_id" },
  workflow_plan: { columns: ["body"], whole: "workflow_execution", key: "execution_id" },
};

/**
 * Returns the number of bytes of the columns of one row; the engine knows it without reading a text
 * to its end.
 */
const bytesOf = (columns: readonly string[], row: string) =>
  columns.map((column) => `ifnull(octet_length(${row}.${column}), 0)`).join(" + ");

const add = (bytes: string, organization: string) =>
  `update organization_storage set bytes = bytes + ${bytes} where organization_id = ${organization}`;

/**
 * Returns the counting triggers of a table.
 * @param organizationOf builds the expression for the organization's id from `new` or `old`
 */
function counting(
  table: string,
  columns: readonly string[],
  organizationOf: (row: "new" | "old") => string,
): string {
  const [before, after] = [bytesOf(columns, "old"), bytesOf(columns, "new")];
  return `
create trigger ${table}_is_counted_in after insert on ${table}
begin ${add(`(${after})`, organizationOf("new"))}; end;
create trigger ${table}_is_counted_anew after update of ${columns.join(", ")} on ${table}
when (${after}) <> (${before})
begin ${add(`(${after}) - (${before})`, organizationOf("new"))}; end;
create trigger ${table}_is_counted_out after delete on ${table}
begin ${add(`-(${before})`, organizationOf("old"))}; end;
`;
}

const countOwned = ([table, columns]: [string, readonly string[]]) =>
  counting(table, columns, (row) => `${row}.organization_id`);

const countPart = ([table, { columns, whole, key }]: [string, Part]) =>
  counting(table, columns, (row) => `(select organization_id from ${whole} where id = ${row}.${key})`);

/**
 * Returns the trigger that removes the parts of a row first: after it, nothing names their
 * organization.
 */
function partsFirst(whole: string): string {
  const parts = Object.entries(PARTS).filter(([, part]) => part.whole === whole);
  const removals = parts.map(([table, { key }]) => `delete from ${table} where ${key} = old.id;`);
  return `
create trigger ${whole}_goes_after_its_parts before delete on ${whole}
begin ${removals.join(" ")} end;
`;
}

const sumsOwned = Object.entries(OWNED).map(
  ([table, columns]) =>
    `select ${table}.organization_id as owner, ${bytesOf(columns, table)} as counted from ${table}`,
);
const sumsOfParts = Object.entries(PARTS).map(
  ([table, { columns, whole, key }]) =>
    `select ${whole}.organization_id as owner, ${bytesOf(columns, table)} as counted
    from ${table} join ${whole} on ${whole}.id = ${table}.${key}`,
);

export const statements = `
create table organization_storage (
  organization_id text primary key references organization (id) on delete cascade,
  bytes integer not null
) strict, without rowid;

insert into organization_storage (organization_id, bytes) select id, 0 from organization;

update organization_storage set bytes = summed.bytes
from (select owner, sum(counted) as bytes from (
  ${[...sumsOwned, ...sumsOfParts].join("\n  union all ")}
) group by owner) as summed
where summed.owner = organization_storage.organization_id;

create trigger organization_is_counted_from after insert on organization
begin insert into organization_storage (organization_id, bytes) values (new.id, 0); end;
${Object.entries(OWNED).map(countOwned).join("")}
${Object.entries(PARTS).map(countPart).join("")}
${[...new Set(Object.values(PARTS).map(({ whole }) => whole))].map(partsFirst).join("")}
`;
