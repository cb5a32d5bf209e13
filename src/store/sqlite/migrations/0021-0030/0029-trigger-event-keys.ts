/**
 * Hashes long deduplication keys from before keys were hashed, so that they are found, and fit PostgreSQL's index. Where
 * an event came again since then, the later entry has the key.
 */
export const name = "0029-trigger-event-keys";

export const statements = `
update workflow_trigger_event as earlier
set dedupe_key = case when exists (
  select 1 from workflow_trigger_event as later
  where later.workflow_id = earlier.workflow_id and later.dedupe_key = stored_key(earlier.dedupe_key)
) then null else stored_key(earlier.dedupe_key) end
where octet_length(dedupe_key) > 1024;
`;
