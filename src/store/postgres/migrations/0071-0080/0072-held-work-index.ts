/** Builds the indexes by which work is found, with one of its own for work that needs something of its runner. */
export const name = "0072-held-work-index";

export const indexes = [
  {
    name: "work_open",
    definition:
      "on work (organization_id, kind, environment_class_id, turn, group_id, id) where leased_by is null and needs = 0",
  },
  {
    name: "work_held",
    definition:
      "on work (organization_id, kind, environment_class_id, turn, group_id, id) where leased_by is null and needs <> 0",
  },
  { name: "work_waiting", definition: "on work (waiting_since) where waiting_since is not null" },
];

export const drops = ["work_ready"];
