/** Builds the index by which held work is found by what it needs, so that none is read that a runner may not have. */
export const name = "0080-held-work-by-needs";

export const indexes = [
  {
    name: "work_held_by_needs",
    definition:
      "on work (organization_id, needs, kind, environment_class_id, turn, group_id, id) where leased_by is null and needs <> 0",
  },
];

export const drops = ["work_held"];
