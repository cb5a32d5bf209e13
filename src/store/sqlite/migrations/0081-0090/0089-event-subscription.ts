/** Adds subscriptions to events, and the ledgers of what was sent to them. */
export const name = "0089-event-subscription";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table event_subscription (
  id text primary key,
  organization_id text not null references organization (id),
  state integer not null,
  sequence integer not null,
  due_at integer not null,
  failing_since integer,
  key_id text not null,
  sealed_url blob not null,
  sealed_secret blob not null,
  sealed_former blob,
  former_until integer,
  body text not null
) strict;
create index event_subscription_by_id on event_subscription (organization_id, id);
create index event_subscription_by_key on event_subscription (key_id);
create index event_subscription_due on event_subscription (due_at) where state = 1;
create table event_delivery (
  id text primary key,
  organization_id text not null references organization (id),
  subscription_id text not null,
  at integer not null,
  state integer not null,
  next_at integer,
  body text not null
) strict;
create index event_delivery_by_organization on event_delivery (organization_id);
create index event_delivery_by_subscription on event_delivery (subscription_id, id);
create index event_delivery_unsent on event_delivery (subscription_id, state, id) where state in (1, 4);

create trigger event_subscription_is_counted_in after insert on event_subscription
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger event_subscription_is_counted_anew after update of body on event_subscription
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger event_subscription_is_counted_out after delete on event_subscription
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
