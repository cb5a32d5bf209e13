/** Questions of people to runners about the environments on them, and which stream of a runner gets it. */
export const name = "0037-environment-question";

export const statements = `
alter table runner add column requests_stream text;
alter table runner add column requests_until integer;

create table environment_question (
  id text primary key,
  organization_id text not null references organization (id),
  runner_id text not null references runner (id) on delete cascade,
  environment_id text not null,
  asker_id text not null,
  ends_at integer not null,
  body text not null,
  answer blob
) strict;
create index environment_question_by_runner on environment_question (runner_id, id);
create index environment_question_by_end on environment_question (ends_at);
create index environment_question_by_organization on environment_question (organization_id);
`;
