import type { ResourceKind, World } from "./world.ts";

/** How the tests that go through every operation call one of them. */
export interface Operation {
  /** A valid request, in JSON. */
  readonly request: (world: World) => object;
  /** False while the operation answers unimplemented. */
  readonly built: boolean;
  /**
   * Every field of the request that is an id, by its path in JSON names, with the kind of resource that it
   * names. `projects[]` means the first element of a list, `ids[]` a list of ids.
   */
  readonly ids: Readonly<Record<string, ResourceKind>>;
  /** What it answers in a world where what it needs is not there: the status and the code. */
  readonly refusal?: readonly [status: number, code: string];
  /** Who calls it, where that is nobody with a personal access token. */
  readonly token?: (world: World) => string;
}

export type Ids = Operation["ids"];
type Request = Operation["request"];

export const built = (request: Request, ids: Ids = {}): Operation => ({ request, ids, built: true });
export const notBuilt = (request: Request, ids: Ids = {}): Operation => ({ request, ids, built: false });

/** The same fields inside another message. */
export const within = (path: string, ids: Ids): Ids =>
  Object.fromEntries(Object.entries(ids).map(([each, kind]) => [`${path}.${each}`, kind]));

export const page = { pagination: { pageSize: 1 } };
export const counted = { ...page, count: { include: true } };
