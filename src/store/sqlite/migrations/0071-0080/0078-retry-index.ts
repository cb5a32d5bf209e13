/** The index by which retention finds the execution that retries another. */
export const name = "0078-retry-index";

export const statements = `
create index workflow_execution_by_retried on workflow_execution (retried_execution_id)
where retried_execution_id is not null;
`;
