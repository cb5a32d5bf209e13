/**
 * The plan of an execution never changes and may be megabytes large: it moves into a row of its
 * own, so that the changing part of an execution stays small. The body keeps the limits of the
 * action and of the report.
 */
export const name = "0015-workflow-plan";

export const statements = `
create table workflow_plan (
  execution_id text primary key references workflow_execution (id) on delete cascade,
  body text not null
) strict;

insert into workflow_plan (execution_id, body)
select id, json_set(json_extract(body, '$.spec'),
  '$.session', '', '$.desiredPhase', 'WORKFLOW_EXECUTION_PHASE_UNSPECIFIED')
from workflow_execution where json_type(body, '$.spec') = 'object';

update workflow_execution set body = json_replace(json_remove(body, '$.spec.trigger'),
  '$.spec.action.steps', json('[]'), '$.spec.report.steps', json('[]'));
`;
