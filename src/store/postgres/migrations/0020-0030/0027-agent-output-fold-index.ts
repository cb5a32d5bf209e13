/** Builds the index of the column of the migration before, while servers write. */
export const name = "0027-agent-output-fold-index";

export const indexes = [
  {
    name: "agent_output_by_fold_key",
    definition: "on agent_output (execution_id, fold_key, sequence) where fold_key is not null",
  },
];
