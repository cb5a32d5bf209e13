import pg from "pg";
import {
  FIND_TOKEN,
  type FoundToken,
  type PeerCaller,
  type PeerRow,
  peerCallerOf,
} from "./project-queries.ts";
import type { openKeys } from "./token-hash.ts";

/** Number of connections of a peer; the project's server uses as many for reads. */
const PEER_CONNECTIONS = 8;

/** Opens a pool of the driver. Converts integers to numbers. */
export function openPeerPool(databaseUrl: string): pg.Pool {
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  return new pg.Pool({ connectionString: databaseUrl, max: PEER_CONNECTIONS });
}

/** Opens a database for a peer that reads with named prepared statements of the driver. */
export function openPgQueries(databaseUrl: string, keys: ReturnType<typeof openKeys>) {
  const pool = openPeerPool(databaseUrl);
  const statement = <R extends object>(name: string, text: string) => {
    return async (...values: unknown[]) => (await pool.query<R>({ name, text, values })).rows;
  };
  const findToken = statement<FoundToken>("find-token", FIND_TOKEN.replace("?", "$1"));
  const getProject = statement<Pick<PeerRow, "body" | "used_by">>(
    "get-project",
    "select body, used_by from project where id = $1 and organization_id = $2",
  );
  const listProjects = statement<PeerRow>(
    "list-projects",
    `select id, popularity, body, used_by from project where organization_id = $1
     order by popularity desc, id limit $2`,
  );
  return {
    async callerOf(authorization: string | undefined): Promise<PeerCaller | undefined> {
      const hash = keys.tokenHash(authorization);
      return hash && peerCallerOf((await findToken(hash))[0]);
    },
    project: async (id: string, organizationId: string) => (await getProject(id, organizationId))[0],
    /** By popularity, highest first. One row more than a page shows that another page follows. */
    projects: (organizationId: string, limit: number) => listProjects(organizationId, limit),
  };
}
