/**
 * connect-node in idiomatic use, like connect-node.ts, with Kysely on a pool of
 * pg. The update of an organization's sequence locks its row, so that its audit
 * chain does not branch. Every write is a separate transaction.
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
