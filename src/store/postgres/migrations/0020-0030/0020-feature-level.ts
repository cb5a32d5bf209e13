/** The lowest feature level of the servers that may use the data: see src/store/feature-level.ts. */
export const name = "0020-feature-level";

/** A volatile function sees what was committed before it is called, also where its statement has waited for a lock. */
export const statements = `
alter table installation add column feature_level bigint not null default 1;
create function current_feature_level() returns bigint language plpgsql volatile as $$
begin
  return (select feature_level from installation);
end $$;
`;
