/** Lets the blocks of one tool call be found without reading the whole output. Blocks from before fold with no other. */
export const name = "0026-agent-output-fold";

export const statements = `
alter table agent_output add column fold_key text collate "C";
`;
