/** Keeps who has sent to the agents of an environment by the role of a group, also when the run is gone. */
export const name = "0068-environment-steering";

export const statements = `
alter table environment add column steered_by text;
`;
