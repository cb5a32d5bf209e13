/** When the owner of a token was notified that it ends soon. */
export const name = "0042-token-warning";

export const statements = `
alter table token add column warned_at bigint;
`;
