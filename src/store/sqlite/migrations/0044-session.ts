/** Of a session that began with a token, the id of that. */
export const name = "0044-session";

export const statements = `
alter table token add column parent_id text;
create index token_by_parent on token (parent_id) where parent_id is not null;
`;
