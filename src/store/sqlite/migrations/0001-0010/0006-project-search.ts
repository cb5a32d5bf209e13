/**
 * A full-text index for the search in projects. `search_grams(text)` is searchTrigrams of domain/;
 * the row numbers of one organization are in a range of their own, so that the texts of other
 * organizations cost a search nothing. Texts shorter than a trigram are found by the index of the
 * first characters. The server merges the index in small steps, of eight segments of a size.
 * Filters by creator get an index as those by remote, runner and annotation have, and the indexes
 * of remotes and annotations begin with the organization: their tables are created again, since a
 * column without a default cannot be added.
 */
export const name = "0006-project-search";

export const statements = `
create table project_search_range (
  organization_id text primary key references organization (id),
  number integer not null unique,
  last_row integer not null
) strict;

alter table project add column search_row integer;

create virtual table project_search using fts5 (
  grams, content = '', columnsize = 0, detail = none, tokenize = 'ascii', prefix = '1 2'
);

insert into project_search_range (organization_id, number, last_row)
select organization_id, row_number() over (order by organization_id),
  row_number() over (order by organization_id) * 1073741824 + count(*)
from project group by organization_id;

update project set search_row = numbered.search_row
from (
  select project.id, number * 1073741824 + row_number() over (partition by project.organization_id order by project.id)
    as search_row
  from project join project_search_range using (organization_id)
) as numbered
where project.id = numbered.id;

create unique index project_by_search_row on project (search_row);
create index project_by_creator on project (organization_id, creator_id);

insert into project_search (rowid, grams)
select search_row, search_grams(search_text) from project order by search_row;

alter table project_remote rename to project_remote_before;
create table project_remote (
  project_id text not null references project (id) on delete cascade,
  organization_id text not null,
  remote_uri text not null,
  primary key (project_id, remote_uri)
) strict, without rowid;
insert into project_remote (project_id, organization_id, remote_uri)
select project_id, organization_id, remote_uri
from project_remote_before cross join project on project.id = project_id
order by project_id, remote_uri;
drop table project_remote_before;
create index project_remote_by_uri on project_remote (organization_id, remote_uri, project_id);

alter table project_annotation rename to project_annotation_before;
create table project_annotation (
  project_id text not null references project (id) on delete cascade,
  organization_id text not null,
  key text not null,
  value text not null,
  primary key (project_id, key)
) strict, without rowid;
insert into project_annotation (project_id, organization_id, key, value)
select project_id, organization_id, key, value
from project_annotation_before cross join project on project.id = project_id
order by project_id, key;
drop table project_annotation_before;
create index project_annotation_by_pair on project_annotation (organization_id, key, value, project_id);

insert into project_search (project_search, rank) values ('automerge', 0);
insert into project_search (project_search, rank) values ('usermerge', 8);
`;
