/** The part of autocannon that the bench uses; autocannon itself has no types. */
declare module "autocannon" {
  import type { EventEmitter } from "node:events";

  export interface Client {
    setRequests(requests: readonly object[]): void;
  }

  export interface Options {
    readonly url: string;
    readonly connections: number;
    readonly amount?: number;
    /** In seconds. */
    readonly duration?: number;
    /** Interval at which it checks whether the run is over, in milliseconds. */
    readonly sampleInt?: number;
    /** Timeout of a request, in seconds. */
    readonly timeout?: number;
    readonly method: "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly setupClient?: (client: Client) => void;
  }

  export interface Result {
    readonly errors: number;
    readonly timeouts: number;
    readonly non2xx: number;
    readonly "2xx": number;
  }

  export default function autocannon(
    options: Options,
    done: (error: Error | null, result: Result) => void,
  ): EventEmitter & { stop(): void };
}
