/**
 * Adds the repositories of context URLs to the text of the project search. `page_repository(url)`
 * is repositoryOfPage of domain/. A changed text gets a new row in the index, as in an update of a
 * project: a search discards candidates of the former row.
 */
export const name = "0013-context-url-search";

export const statements = `
create table project_page (
  id text primary key,
  organization_id text not null,
  search_text text not null,
  search_row integer not null
) strict;

insert into project_page (id, organization_id, search_text, search_row)
select id, organization_id, search_text || repositories,
  last_row + row_number() over (partition by organization_id order by id)
from (
  select project.id, project.organization_id, project.search_text,
    (select group_concat(char(10) || fold(page), '') from (
      select distinct page_repository(json_extract(spec.value, '$.contextUrl.url')) as page
      from json_each(project.body, '$.initializer.specs') as spec
      where json_extract(spec.value, '$.contextUrl.url') is not null
    )) as repositories
  from project
) join project_search_range using (organization_id)
where repositories is not null;

insert into project_search (rowid, grams)
select search_row, search_grams(search_text) from project_page order by search_row;

update project set search_text = page.search_text, search_row = page.search_row
from project_page as page where page.id = project.id;

update project_search_range set last_row = changed.last_row
from (select organization_id, max(search_row) as last_row from project_page group by organization_id) as changed
where changed.organization_id = project_search_range.organization_id;

drop table project_page;
`;
