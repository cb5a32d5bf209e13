/**
 * The release that stores tokens under their SHA-256. Older ones keep their HMAC until they are
 * next used or expire: only the owner of a token can hash it.
 */
export const name = "0019-token-hash";

export const statements = `
alter table token add column hmac_key_id text;
update token set hmac_key_id = key_id;
drop index token_by_key;
alter table token drop column key_id;
create index token_by_hmac_key on token (hmac_key_id) where hmac_key_id is not null;
`;
