import type { ProjectFilter } from "../../../src/store/project/project-filter.ts";

/** Lets every project through. */
export const ANY_PROJECT: ProjectFilter = {
  projectIds: [],
  search: "",
  runnerIds: [],
  runnerKinds: [],
  remoteUris: [],
  creatorIds: [],
  annotations: {},
};
