/**
 * The index that leads from a search text to its project includes the project's position in both
 * orders, so that search results are sorted without reading the projects. A new score rewrites its
 * entry. Uniqueness of rows per project is no longer enforced, and need not be: every candidate is
 * tested.
 */
export const name = "0007-project-search-order";

export const statements = `
drop index project_by_search_row;
create index project_by_search_row on project (search_row, popularity, id);
`;
