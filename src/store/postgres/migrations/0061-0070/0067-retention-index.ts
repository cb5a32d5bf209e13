/** Builds the indexes by which retention finds executions, while servers write. */
export const name = "0067-retention-index";

export const indexes = [
  {
    name: "workflow_execution_being_removed",
    definition: "on workflow_execution (organization_id, id) where removed_at is not null",
  },
  {
    name: "agent_execution_being_removed",
    definition: "on agent_execution (organization_id, id) where removed_at is not null",
  },
  {
    name: "agent_execution_by_stop",
    definition: "on agent_execution (organization_id, stopped_at) where stopped_at is not null",
  },
  {
    name: "agent_execution_by_earlier",
    definition: "on agent_execution (earlier_id) where earlier_id is not null",
  },
];
