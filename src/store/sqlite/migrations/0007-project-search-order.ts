/**
 * The index that leads from a search text to its project has the project's place
 * in both orders, so that what a search may list is sorted without being read.
 * A new score writes its entry anew. That no two projects share a row is no
 * longer enforced, and need not be: what an index leads to is tested.
 */
export const name = "0007-project-search-order";

export const statements = `
drop index project_by_search_row;
create index project_by_search_row on project (search_row, popularity, id);
`;
