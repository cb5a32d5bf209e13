/** Questions of people to runners about the environments on them, and which stream of a runner gets it. */
export const name = "0037-environment-question";

export const statements = `
alter table runner add column requests_stream text collate "C";
alter table runner add column requests_until bigint;

create table environment_question (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  runner_id text collate "C" not null references runner (id) on delete cascade deferrable,
  environment_id text collate "C" not null,
  asker_id text collate "C" not null,
  ends_at bigint not null,
  body text collate "C" not null,
  answer bytea
);
create index environment_question_by_runner on environment_question (runner_id, id);
create index environment_question_by_end on environment_question (ends_at);
create index environment_question_by_organization on environment_question (organization_id);
`;
