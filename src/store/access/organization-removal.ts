import { chainRemovalBody } from "../../domain/record/audit-verification.ts";
import type { OrganizationTable } from "../identity/identity-schema.ts";
import type { WriteTransaction } from "../store.ts";

/**
 * Removes an organization with everything that it owns, including its audit chain, whose head the
 * installation's chain keeps. Only for the operator, while no server runs.
 * @param onTable called for each table with the number of its rows, before they are removed
 */
export async function removeOrganization(
  tx: WriteTransaction,
  organization: OrganizationTable,
  onTable: (table: string, rows: number) => void,
): Promise<void> {
  const { id, name } = organization;
  await tx.deleteOwnedRows(id, onTable);
  tx.record({
    organizationId: null,
    type: "organization",
    id,
    kind: "deleted",
    before: chainRemovalBody(name, organization),
  });
}
