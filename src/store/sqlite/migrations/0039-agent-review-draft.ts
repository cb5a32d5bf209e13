/** Drafts of reviews of what agent executions have changed, each for its author. */
export const name = "0039-agent-review-draft";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table agent_review_draft (
  id text primary key,
  organization_id text not null references organization (id),
  execution_id text not null references agent_execution (id) on delete cascade,
  author_id text not null,
  author_principal integer not null,
  body text not null
) strict;
create index agent_review_draft_by_execution on agent_review_draft (execution_id, author_id, id);
create index agent_review_draft_by_author on agent_review_draft (organization_id, author_id);

create trigger agent_review_draft_is_counted_in after insert on agent_review_draft
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger agent_review_draft_is_counted_anew after update of body on agent_review_draft
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger agent_review_draft_is_counted_out after delete on agent_review_draft
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
