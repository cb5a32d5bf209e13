/**
 * connect-node in idiomatic use: the stock adapter on node:http, the
 * generated types, protovalidate and the access log in interceptors, and Kysely
 * on better-sqlite3, which builds each query where it is run. Every write is a
 * separate transaction that is forced to disk.
 *
 * It leaves out deadlines beyond the adapter's own, limits on the rate of
 * bodies, policies, idempotency keys, and the time when a token was last used.
 */
import { openConnectQueries } from "./connect-queries.ts";
import { serveConnect } from "./connect-server.ts";
import { enterSearchText, openConnectWrites } from "./connect-writes.ts";
import { dataFolder } from "./serve-peer.ts";
import { openKeys } from "./token-hash.ts";

const keys = openKeys(dataFolder());
const queries = openConnectQueries(dataFolder());
serveConnect(keys, queries, openConnectWrites(queries.db, keys, enterSearchText));
