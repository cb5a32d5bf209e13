/** Where requests to source-control hosts may go. */
export interface ScmSettings {
  /** Whether they may go to addresses that are not public, such as those of a host inside the company. */
  readonly allowPrivateAddresses: boolean;
  /** Hosts in lower case, as in `git.example.org:8080`, that are asked over plain http; every other over https. */
  readonly plainHttpHosts: ReadonlySet<string>;
}

/** What requests may cost. */
export interface ScmLimits {
  /** Of one request, from the search for the address to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Of one answer's body. */
  readonly answerBytes: number;
  /** Hosts whose kind is remembered; of more, the one that was found out first is forgotten. */
  readonly knownHosts: number;
}

/** A page of 100 repositories is below 1 MiB at either host; an installation knows a handful of hosts. */
export const SCM_LIMITS: ScmLimits = {
  timeoutMs: 10_000,
  answerBytes: 5 * 1_024 * 1_024,
  knownHosts: 1_000,
};
