/** The subject that asked for a prebuild, null when its project's schedule did, and the order of their list. */
export const name = "0090-prebuild-creator";

export const statements = `
alter table prebuild add column creator_id text;
create index prebuild_by_id on prebuild (organization_id, id);
`;
