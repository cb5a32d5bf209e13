/** Adds the devices that ask for a token which a person allows them, and counts codes that were typed wrong. */
export const name = "0062-device-login";

export const statements = `
create table device_login (
  id text collate "C" primary key,
  device_hash bytea not null unique,
  user_mac bytea not null unique,
  machine text collate "C" not null,
  address text collate "C" not null,
  network text collate "C" not null,
  created_at bigint not null,
  expires_at bigint not null,
  interval_ms bigint not null,
  polled_at bigint,
  organization_id text collate "C",
  user_id text collate "C",
  denied bigint not null
);
create index device_login_by_network on device_login (network, expires_at);
create index device_login_by_end on device_login (expires_at);
create index device_login_by_user on device_login (organization_id, user_id) where organization_id is not null;
create table sign_in_attempt (
  key text collate "C" primary key,
  since bigint not null,
  count bigint not null
);
create index sign_in_attempt_by_time on sign_in_attempt (since);
`;
