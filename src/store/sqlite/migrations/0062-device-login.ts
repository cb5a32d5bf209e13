/** Adds the devices that ask for a token which a person allows them, and counts codes that were typed wrong. */
export const name = "0062-device-login";

export const statements = `
create table device_login (
  id text primary key,
  device_hash blob not null unique,
  user_mac blob not null unique,
  machine text not null,
  address text not null,
  network text not null,
  created_at integer not null,
  expires_at integer not null,
  interval_ms integer not null,
  polled_at integer,
  organization_id text,
  user_id text,
  denied integer not null
) strict;
create index device_login_by_network on device_login (network, expires_at);
create index device_login_by_end on device_login (expires_at);
create index device_login_by_user on device_login (organization_id, user_id) where organization_id is not null;
create table sign_in_attempt (
  key text primary key,
  since integer not null,
  count integer not null
) strict;
create index sign_in_attempt_by_time on sign_in_attempt (since);
`;
