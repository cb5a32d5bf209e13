/** The lowest feature level of the servers that may use the data: see src/store/feature-level.ts. */
export const name = "0020-feature-level";

export const statements = `
alter table installation add column feature_level integer not null default 1;
`;
