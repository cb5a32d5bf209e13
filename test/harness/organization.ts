import { v7 } from "uuid";
import { keyFileOf } from "../../src/config.ts";
import { loadKeys } from "../../src/keys.ts";
import { foundOrganization } from "../../src/services/found-organization.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { TestServer } from "./server.ts";

/** Makes another organization beside a running server, as an operator would; its administrator's token. */
export async function addOrganization(server: Pick<TestServer, "dataDir">, name: string) {
  const { dataDir } = server;
  const store = openStore({ dataDir, now: Date.now, newId: v7 });
  try {
    return await foundOrganization(store, loadKeys(keyFileOf({ dataDir, keyFile: "" })), {
      operation: "test",
      organizationName: name,
      accountName: `Administrator of ${name}`,
      email: `${name}@localhost`,
    });
  } finally {
    await store.close();
  }
}
