/**
 * Time triggers get a time zone of their own, and executions hold the first failures and warnings
 * of their actions. Those of earlier executions are read from their actions, in the order of these.
 */
export const name = "0012-zone-and-conclusion";

/** Selects the first 10 errors of a kind of an execution's actions, each with its action. */
const errorsOfActions = (kind: "failures" | "warnings") => `
  select json_group_array(json(told)) from (
    select json_patch(error.value, json_object('meta', json_object(
      'workflow_execution_action_id', workflow_action.id,
      'action_name', coalesce(json_extract(workflow_action.body, '$.metadata.actionName'), '')
    ))) as told
    from workflow_action, json_each(workflow_action.body, '$.status.${kind}') as error
    where workflow_action.execution_id = workflow_execution.id
    order by workflow_action.id, error.key
    limit 10
  )`;

/**
 * Actions that are done have no failures, unlike failed ones and those that are being stopped or
 * were stopped.
 */
const ALL_DONE = "done_count > 0 and pending_count + running_count + failed_count + stopped_count = 0";

export const statements = `
alter table workflow_schedule add column time_zone text not null default '';

alter table workflow_execution add column action_failures text not null default '[]';
alter table workflow_execution add column action_warnings text not null default '[]';

update workflow_execution set
  action_failures = case when ${ALL_DONE} then '[]' else (${errorsOfActions("failures")}) end,
  action_warnings = (${errorsOfActions("warnings")});
`;
