import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { until } from "./until.ts";

/** A delivery as a receiver got it. */
export interface ReceivedEvent {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A receiver of events in this process, over real HTTP. */
export interface EventReceiver {
  /** Host and port. */
  readonly host: string;
  /** With a path of its own, which no other receiver of the test has. */
  url(path: string): string;
  /** Makes the next deliveries to a path fail, or be answered in another way, in this order. */
  answer(path: string, ...answers: readonly Answer[]): void;
  /** Returns what has arrived at a path once it is so many deliveries. */
  arrived(path: string, count: number): Promise<readonly ReceivedEvent[]>;
  /** Returns what has arrived at a path by now. */
  at(path: string): readonly ReceivedEvent[];
  stop(): Promise<void>;
}

/** How a delivery is answered. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The answer is sent once it resolves; a delivery counts as arrived before. */
  readonly after?: Promise<unknown>;
}

/** Starts a receiver that takes everything (204) unless configured otherwise. */
export async function startEventReceiver(): Promise<EventReceiver> {
  const received: ReceivedEvent[] = [];
  const answers = new Map<string, Answer[]>();
  const server = createServer((req, res) => {
    void (async () => {
      const path = req.url ?? "";
      const body = await text(req);
      const headers = Object.fromEntries(
        Object.entries(req.headers).map(([name, value]) => [name, String(value)]),
      );
      const { status, headers: own, body: content, after } = answers.get(path)?.shift() ?? { status: 204 };
      received.push({ path, headers, body });
      await after;
      res.writeHead(status, own).end(content);
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const at = (path: string) => received.filter((each) => each.path === path);
  return {
    host,
    url: (path) => `http://${host}${path}`,
    answer: (path, ...next) => void answers.set(path, [...(answers.get(path) ?? []), ...next]),
    arrived: (path, count) =>
      until(
        () => at(path),
        (found) => found.length >= count,
      ),
    at,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
