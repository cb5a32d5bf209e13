import { join } from "node:path";
import { startFile } from "./node-process.ts";

/**
 * What a link does with its connections: forwards everything; forwards all but notifications; forwards nothing and
 * closes nothing, as a network that is cut; breaks them and every new one; breaks each when the database has
 * committed and before the server hears of it; or holds a transaction with the link's marker in it just before its
 * commit reaches the database, or after that and just before the answer reaches the server.
 */
export type LinkState =
  | "open"
  | "mute"
  | "silent"
  | "refused"
  | "unheard-commits"
  | "held-commits"
  | "held-answers";

/** The network between one server and the database, which tests can cut. */
export interface DatabaseLink {
  /** Address of the database by way of the link. */
  readonly url: string;
  /** Resolves when the link is in the state. @param marker a text in what writes send that are to be held, each with another number behind it */
  enter(state: LinkState, marker?: string): Promise<void>;
  /** Returns the number of writes that share the transaction that is held; 0 while none is. */
  held(): Promise<number>;
  /** Returns how many notifications were dropped. */
  dropped(): Promise<number>;
}

/**
 * Starts links to a database, in a process of their own: that of the test has enough to do. {@link endNodes} ends it.
 *
 * @param url of the database, without TLS
 */
export async function startLinks(url: string, count: number): Promise<DatabaseLink[]> {
  const { port } = new URL(url);
  const links = startFile(join(import.meta.dirname, "link-process.ts"), [port, String(count)], {});
  const ports = (await links.next()) as number[];
  const ask = (question: object) => {
    links.send(JSON.stringify(question));
    return links.next() as Promise<{ readonly dropped: number; readonly held: number }>;
  };
  return ports.map((linkPort, index) => ({
    url: Object.assign(new URL(url), { port: String(linkPort) }).href,
    enter: async (state, marker) => void (await ask({ index, state, marker })),
    held: async () => (await ask({ index })).held,
    dropped: async () => (await ask({ index })).dropped,
  }));
}
