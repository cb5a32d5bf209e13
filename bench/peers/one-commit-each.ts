/**
 * The project's server without group commits: built like `chartroom serve`,
 * except for one option of the store that commits each write separately. There
 * is no setting for this, since nobody would want it; only the bench compares
 * the two. If a database is given, it runs on PostgreSQL.
 */
import { join } from "node:path";
import { v7 } from "uuid";
import { readConfig } from "../../src/config/config.ts";
import { loadKeys } from "../../src/keys.ts";
import { createLog } from "../../src/log.ts";
import { buildServer } from "../../src/server.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { databaseUrl, dataFolder } from "./serve-peer.ts";

const dataDir = dataFolder();
// All calls use one token, so rate limits are off.
const config = readConfig({ dataDir, port: "0", rateLimits: "off" }, {});
const keys = loadKeys(join(dataDir, "key.json"));
const options = { now: Date.now, newId: v7, audit: keys.audit };
const database = databaseUrl();
const store = database
  ? await openPostgresStore({ ...options, url: database, presence: "server", groupMs: 0 })
  : openStore({ ...options, dataDir, grouping: false });
const server = buildServer(config, {
  providers: [],
  machineIssuers: [],
  store,
  keys,
  log: createLog("info"),
  now: Date.now,
});
const url = await server.listen();
process.stdout.write(`Chartroom is ready at ${url}\n`);
process.on("SIGTERM", async () => {
  await server.close();
  await store.close();
  process.exit(0);
});
