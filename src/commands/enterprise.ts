import type { DataConfig } from "../config/config.ts";
import { setEnterprise } from "../services/policy/enterprise.ts";
import { openExistingData } from "./open-data.ts";
import { resolveOrganization } from "./organization.ts";

/**
 * Marks an organization as enterprise, or removes the mark together with the policies that need it. Works while a
 * server runs.
 *
 * @param named the organization's id, or its name if that is unique
 * @returns the report for the person at the terminal
 * @throws StartError when no organization matches, or more than one
 */
export async function markEnterprise(
  config: DataConfig,
  named: string,
  enterprise: boolean,
): Promise<string> {
  const { store } = await openExistingData(config);
  try {
    const { id, name } = await resolveOrganization(store, named);
    await setEnterprise(store, { organizationId: id }, enterprise);
    return `${name} is ${enterprise ? "" : "not "}marked as enterprise\n`;
  } finally {
    await store.close();
  }
}
