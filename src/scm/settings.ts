import type { RequestTraces } from "../domain/trace/request-traces.ts";

/** The restrictions on where requests to source-control hosts may be sent. */
export interface ScmSettings {
  /** True if they may go to addresses that are not public, such as those of a host inside the company. */
  readonly allowPrivateAddresses: boolean;
  /**
   * Hosts in lower case, as in `git.example.org:8080`, that are called over plain
   * http; every other over https.
   */
  readonly plainHttpHosts: ReadonlySet<string>;
  /** Records the spans of requests; absent when traces are not sent. */
  readonly traces?: RequestTraces | undefined;
}

/** The limits on the cost of requests. */
export interface ScmLimits {
  /** Maximum time of one request, from the search for the address to the last byte of the response. */
  readonly timeoutMs: number;
  /** Maximum size of one response's body. */
  readonly responseBytes: number;
  /** Number of hosts whose kind is cached; beyond it, the oldest entry is dropped. */
  readonly knownHosts: number;
}

/** A page of 100 repositories is below 1 MiB at either host; an installation knows a handful of hosts. */
export const SCM_LIMITS: ScmLimits = {
  timeoutMs: 10_000,
  responseBytes: 5 * 1_024 * 1_024,
  knownHosts: 1_000,
};
