/**
 * The index that leads from a search text to its project has the project's place
 * in both orders, so that what a search may list is sorted without being read.
 */
export const name = "0007-project-search-order";

export const statements = `
drop index project_by_search_row;
create index project_by_search_row on project (search_row, popularity, id);
`;
