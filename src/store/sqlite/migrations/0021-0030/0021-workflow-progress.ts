/**
 * Gives what changes of executions and actions columns of its own, so that their bodies are written once. The next
 * migration fills them; servers of releases before would read and write the bodies.
 */
export const name = "0021-workflow-progress";

export const lowestLevel = 2;

const ACTION = ["outputs", "body", "progress"];
const EXECUTION = ["variables", "action_failures", "action_warnings", "body", "progress"];

/** Returns the statements that make the triggers of 0016-organization-storage count the new column, too. */
function counting(table: string, columns: readonly string[]): string {
  const bytesOf = (row: string) =>
    columns.map((column) => `ifnull(octet_length(${row}.${column}), 0)`).join(" + ");
  const [before, after] = [bytesOf("old"), bytesOf("new")];
  const add = (bytes: string, row: string) =>
    `update organization_storage set bytes = bytes + ${bytes} where organization_id = ${row}.organization_id`;
  return `
drop trigger ${table}_is_counted_in;
drop trigger ${table}_is_counted_anew;
drop trigger ${table}_is_counted_out;
create trigger ${table}_is_counted_in after insert on ${table}
begin ${add(`(${after})`, "new")}; end;
create trigger ${table}_is_counted_anew after update of ${columns.join(", ")} on ${table}
when (${after}) <> (${before})
begin ${add(`(${after}) - (${before})`, "new")}; end;
create trigger ${table}_is_counted_out after delete on ${table}
begin ${add(`-(${before})`, "old")}; end;
`;
}

export const statements = `
alter table workflow_execution add column session text;
alter table workflow_execution add column progress text;
alter table workflow_action add column session text;
alter table workflow_action add column finished_at integer;
alter table workflow_action add column attempt integer not null default 0;
alter table workflow_action add column progress text;
${counting("workflow_action", ACTION)}
${counting("workflow_execution", EXECUTION)}
-- Of two indexes that seem to cost the same in the wider table, the engine takes the newer one.
drop index workflow_execution_open;
create index workflow_execution_open on workflow_execution (organization_id, executor_id)
where finished_at is null;
`;
