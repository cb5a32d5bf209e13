/** Drafts of reviews of what agent executions have changed, each for its author. */
export const name = "0039-agent-review-draft";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table agent_review_draft (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  execution_id text collate "C" not null references agent_execution (id) on delete cascade deferrable,
  author_id text collate "C" not null,
  author_principal bigint not null,
  body text collate "C" not null
);
create index agent_review_draft_by_execution on agent_review_draft (execution_id, author_id, id);
create index agent_review_draft_by_author on agent_review_draft (organization_id, author_id);

create function agent_review_draft_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger agent_review_draft_is_counted_in after insert on agent_review_draft
  for each row execute function agent_review_draft_is_counted_in();
create function agent_review_draft_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger agent_review_draft_is_counted_again after update of body on agent_review_draft
  for each row execute function agent_review_draft_is_counted_again();
create function agent_review_draft_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger agent_review_draft_is_counted_out after delete on agent_review_draft
  for each row execute function agent_review_draft_is_counted_out();
`;
