/** Lets the blocks of one tool call be found without reading the whole output. Blocks from before fold with no other. */
export const name = "0026-agent-output-fold";

export const statements = `
alter table agent_output add column fold_key text;
create index agent_output_by_fold_key on agent_output (execution_id, fold_key, sequence)
where fold_key is not null;
`;
