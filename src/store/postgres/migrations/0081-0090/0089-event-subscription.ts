/** Adds subscriptions to events, and the ledgers of what was sent to them. */
export const name = "0089-event-subscription";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table event_subscription (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  state bigint not null,
  sequence bigint not null,
  due_at bigint not null,
  failing_since bigint,
  key_id text collate "C" not null,
  sealed_url bytea not null,
  sealed_secret bytea not null,
  sealed_former bytea,
  former_until bigint,
  body text collate "C" not null
);
create index event_subscription_by_id on event_subscription (organization_id, id);
create index event_subscription_by_key on event_subscription (key_id);
create index event_subscription_due on event_subscription (due_at) where state = 1;
create table event_delivery (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  subscription_id text collate "C" not null,
  at bigint not null,
  state bigint not null,
  next_at bigint,
  body text collate "C" not null
);
create index event_delivery_by_organization on event_delivery (organization_id);
create index event_delivery_by_subscription on event_delivery (subscription_id, id);
create index event_delivery_unsent on event_delivery (subscription_id, state, id) where state in (1, 4);

create function event_subscription_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger event_subscription_is_counted_in after insert on event_subscription
  for each row execute function event_subscription_is_counted_in();
create function event_subscription_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger event_subscription_is_counted_again after update of body on event_subscription
  for each row execute function event_subscription_is_counted_again();
create function event_subscription_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger event_subscription_is_counted_out after delete on event_subscription
  for each row execute function event_subscription_is_counted_out();
`;
