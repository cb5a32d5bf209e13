import { type Answer, post, reasonOf } from "../../harness/call.ts";
import { addOrganization } from "../../harness/organization.ts";
import type { TestServer } from "../../harness/server.ts";

/** An organization of its own on servers over one database. */
export interface Place {
  /** Address of the database. */
  readonly url: string;
  /** One of the servers, with the token of the organization's administrator. */
  readonly server: TestServer;
  readonly organizationId: string;
  readonly userId: string;
  readonly token: string;
  /** Calls an operation as the administrator. @param at one of the servers; by default the first */
  call(operation: string, body?: object, at?: TestServer): Promise<Answer>;
}

let places = 0;

/** Creates an organization in the data of servers. @param url of their database */
export async function newPlace(server: TestServer, url: string): Promise<Place> {
  places += 1;
  const { organizationId, userId, token } = await addOrganization(server, `place-${places}`);
  return {
    url,
    server: { ...server, token },
    organizationId,
    userId,
    token,
    call: (operation, body = {}, at = server) => post(at, operation, body, token),
  };
}

/** What is tried at the same time, and what comes of it. */
export interface Trial {
  /** Each is called at one of the servers, in turn. */
  readonly calls: readonly ((at: TestServer) => Promise<string>)[];
  /** The outcomes in any order; undefined where only what is stored matters. */
  readonly outcomes: readonly string[] | undefined;
  /** Checks what is stored afterwards. */
  after?(): Promise<void>;
}

/** A rule, and what would break it if servers did not exclude each other. */
export type Rule = readonly [rule: string, prepare: (place: Place) => Promise<Trial>];

/** Returns a list of so many times the same. */
export const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

/** Returns the reason of an error, or "done". */
export const outcomeOf = (answer: Answer): string => (answer.status === 200 ? "done" : `${reasonOf(answer)}`);
