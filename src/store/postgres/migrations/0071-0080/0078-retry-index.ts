/** Builds the index by which retention finds the execution that retries another, while servers write. */
export const name = "0078-retry-index";

export const indexes = [
  {
    name: "workflow_execution_by_retried",
    definition: "on workflow_execution (retried_execution_id) where retried_execution_id is not null",
  },
];
