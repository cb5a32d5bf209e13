import type { ProjectFilter } from "../../../src/store/project/project-filter.ts";

/** Matches every project. */
export const ANY_PROJECT: ProjectFilter = {
  projectIds: [],
  search: "",
  runnerIds: [],
  runnerKinds: [],
  remoteUris: [],
  creatorIds: [],
  annotations: {},
};
