import { openData } from "../../src/commands/open-data.ts";
import { createOrganizationWithToken } from "../../src/services/access/organization-creation.ts";
import { dataConfigOf } from "./data-config.ts";
import type { ReachableServer } from "./server.ts";

/**
 * Creates another organization in the data of a running server, as an operator would, and returns
 * its administrator's token.
 */
export async function addOrganization(server: Pick<ReachableServer, "dataDir">, name: string) {
  const { dataDir } = server;
  const { store, keys } = await openData(dataConfigOf(dataDir));
  try {
    return await createOrganizationWithToken(store, keys, {
      operation: "test",
      organizationName: name,
      accountName: `Administrator of ${name}`,
      email: `${name}@localhost`,
    });
  } finally {
    await store.close();
  }
}
