/**
 * Hashes long deduplication keys from before keys were hashed, so that they are found, and fit the index. Where an event
 * came again since then, the later entry has the key.
 */
export const name = "0029-trigger-event-keys";

const hashed = "'sha256:' || encode(sha256(convert_to(earlier.dedupe_key, 'UTF8')), 'hex')";

export const statements = `
update workflow_trigger_event as earlier
set dedupe_key = case when exists (
  select from workflow_trigger_event as later
  where later.workflow_id = earlier.workflow_id and later.dedupe_key = ${hashed}
) then null else ${hashed} end
where octet_length(dedupe_key) > 1024;
`;
