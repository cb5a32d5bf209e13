/** Where requests to source-control hosts may go. */
export interface ScmSettings {
  /** Whether they may go to addresses that are not public, such as those of a host inside the company. */
  readonly allowPrivateAddresses: boolean;
  /** Hosts in lower case, as in `git.example.org:8080`, that are asked over plain http; every other over https. */
  readonly plainHttpHosts: ReadonlySet<string>;
}

/** What one request may cost. */
export interface ScmLimits {
  /** From the search for the address to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Of the answer's body. */
  readonly answerBytes: number;
}

/** A page of 100 repositories is below 1 MiB at either host. */
export const SCM_LIMITS: ScmLimits = { timeoutMs: 10_000, answerBytes: 5 * 1_024 * 1_024 };
