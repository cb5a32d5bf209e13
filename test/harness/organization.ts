import { createOrganizationWithToken } from "../../src/services/access/organization-creation.ts";
import { withServerData } from "./member.ts";
import type { ReachableServer } from "./server.ts";

/**
 * Creates another organization in the data of a running server, as an operator would, and returns
 * its administrator's token.
 */
export function addOrganization(server: Pick<ReachableServer, "dataDir">, name: string) {
  return withServerData(server, (store, keys) =>
    createOrganizationWithToken(store, keys, {
      operation: "test",
      organizationName: name,
      accountName: `Administrator of ${name}`,
      email: `${name}@localhost`,
    }),
  );
}
