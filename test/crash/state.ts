import { type Answer, post } from "../harness/call.ts";
import type { TestServer } from "../harness/server.ts";

export type Body = Answer["body"];

/** Everything that clients can see, by id. */
export interface State {
  readonly projects: ReadonlyMap<string, Body>;
  readonly environments: ReadonlyMap<string, Body>;
}

/** Reads all projects and environments of the token's organization. */
export async function readState(server: Pick<TestServer, "url">, token: string): Promise<State> {
  const [projects, environments] = await Promise.all([
    readAll(server, token, "ProjectService/ListProjects", "projects", { sort: { field: "id" } }),
    readAll(server, token, "EnvironmentService/ListEnvironments", "environments", {}),
  ]);
  return { projects, environments };
}

async function readAll(
  { url }: Pick<TestServer, "url">,
  token: string,
  operation: string,
  member: string,
  query: object,
): Promise<Map<string, Body>> {
  const found = new Map<string, Body>();
  let next = "";
  do {
    const pagination = { pageSize: 100, token: next };
    const { body } = await post({ url, token }, operation, { ...query, pagination });
    for (const each of body[member]) found.set(each.id, each);
    next = body.pagination.nextToken;
  } while (next !== "");
  return found;
}
