/**
 * connect-node as its users write it, like connect-node.ts, with Kysely on a
 * pool of pg. An organization's row is locked by the change of its sequence, so
 * that its chain has no branches; every write is a transaction of its own.
 */
import { openConnectQueriesOnPostgres } from "./connect-queries.ts";
import { serveConnect } from "./connect-server.ts";
import { openConnectWrites } from "./connect-writes.ts";
import { databaseUrl, dataFolder } from "./serve-peer.ts";
import { openKeys } from "./token-hash.ts";

const keys = openKeys(dataFolder());
const queries = openConnectQueriesOnPostgres(databaseUrl() ?? "");
serveConnect(
  keys,
  queries,
  openConnectWrites(queries.db, keys, async () => null),
);
