import { PROJECT_GRAMS } from "../../search/project-grams.ts";

/**
 * Finds texts of any length within an organization, and remotes of a project without a hash that two could share. Both
 * replace earlier indexes, the first one of trigrams by the extension pg_trgm.
 */
export const name = "0028-project-indexes";

export const functions = PROJECT_GRAMS;

export const indexes = [
  {
    name: "project_by_grams",
    definition: "on project using gin (project_grams(organization_id, search_text))",
  },
  { name: "project_remote_of_project", definition: "on project_remote (project_id)" },
];

export const drops = ["project_by_search_text", "project_remote_by_project"];
