/**
 * connect-node as its users write it: the stock adapter on node:http, the
 * generated types, protovalidate and the access log in interceptors, and Kysely
 * on better-sqlite3, its queries built where they are run. Every write is a
 * transaction of its own, forced to disk.
 *
 * It leaves out deadlines beyond the adapter's own, limits on the pace of
 * bodies, policies, idempotency keys, and the note of when a token was last used.
 */
import { openConnectQueries } from "./connect-queries.ts";
import { serveConnect } from "./connect-server.ts";
import { enterSearchText, openConnectWrites } from "./connect-writes.ts";
import { dataFolder } from "./serve-peer.ts";
import { openKeys } from "./token-hash.ts";

const keys = openKeys(dataFolder());
const queries = openConnectQueries(dataFolder());
serveConnect(keys, queries, openConnectWrites(queries.db, keys, enterSearchText));
