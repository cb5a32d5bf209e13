/**
 * Gives what changes of executions and actions columns of its own, so that their bodies are written once. The next
 * migration fills them; servers of releases before would read and write the bodies.
 */
export const name = "0021-workflow-progress";

export const lowestLevel = 2;

const ACTION = ["outputs", "body", "progress"];
const EXECUTION = ["variables", "action_failures", "action_warnings", "body", "progress"];

/** Returns the statements that make the triggers of 0019-baseline count the new column, too. */
function counting(table: string, columns: readonly string[]): string {
  const bytesOf = (row: string) =>
    columns.map((column) => `coalesce(octet_length(${row}.${column}), 0)`).join(" + ");
  const [before, after] = [bytesOf("old"), bytesOf("new")];
  const define = (name: string, row: "old" | "new", bytes: string, condition = "true") => `
create or replace function ${name}() returns trigger language plpgsql as $$ begin
  if ${condition} then
    update organization_storage set bytes = bytes + (${bytes}) where organization_id = ${row}.organization_id;
  end if;
  return new;
end $$;`;
  const again = `${table}_is_counted_again`;
  return `
${define(`${table}_is_counted_in`, "new", after)}
${define(again, "new", `(${after}) - (${before})`, `(${after}) <> (${before})`)}
${define(`${table}_is_counted_out`, "old", `-(${before})`)}
drop trigger ${again} on ${table};
create trigger ${again} after update of ${columns.join(", ")} on ${table}
  for each row execute function ${again}();
`;
}

export const statements = `
alter table workflow_execution add column session text collate "C", add column progress text collate "C";
alter table workflow_action add column session text collate "C", add column finished_at bigint,
  add column attempt bigint not null default 0, add column progress text collate "C";
${counting("workflow_action", ACTION)}
${counting("workflow_execution", EXECUTION)}
`;
