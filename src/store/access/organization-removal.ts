import { removedBody } from "../../domain/record/audit-verification.ts";
import type { OrganizationTable } from "../identity/identity-schema.ts";
import type { WriteTransaction } from "../store.ts";

/**
 * Removes an organization with all that is its own, its audit chain too, of which
 * the installation's keeps the head. Only for the operator, while no server runs.
 *
 * @param onTable told of each table and how many of its rows go, before they do
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
    before: removedBody(name, organization),
  });
}
