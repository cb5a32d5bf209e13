/**
 * The last setters of the source that work begins from, as a JSON array of subjects: all of them
 * decide whose credential may be used for it. Null, as in every existing row, means the resource's
 * creator. For a webhook secret the column holds the subjects that have been given it, and existing
 * ones count as known to the workflow's creator.
 */
export const name = "0009-source-setter";

export const statements = `
alter table project add column source_set_by text;
alter table environment add column source_set_by text;
alter table workflow_execution add column source_set_by text;
alter table workflow_secret add column known_to text not null default '[]';
alter table workflow_secret add column previous_known_to text not null default '[]';
update workflow_secret set
  known_to = (select json_array(json_extract(workflow.body, '$.metadata.creator'))
    from workflow where workflow.id = workflow_secret.workflow_id),
  previous_known_to = (select json_array(json_extract(workflow.body, '$.metadata.creator'))
    from workflow where workflow.id = workflow_secret.workflow_id);
`;
