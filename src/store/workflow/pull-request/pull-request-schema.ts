/** Rows of pull requests; ../schema.ts combines them and explains how to read them. */
export interface PullRequestTable {
  id: string;
  organization_id: string;
  /** Empty outside of workflows. */
  workflow_id: string;
  /** Empty outside of workflows. */
  execution_id: string;
  /** The action that it belongs to; null outside of workflows. */
  action_id: string | null;
  /** Environment in which it was opened, which may have been removed; empty for none. */
  environment_id: string;
  /** The agent execution that it was opened for; null for none. */
  agent_execution_id: string | null;
  /** The creator of the environment, the only reader besides administrators; null if everyone may read it. */
  owner_id: string | null;
  owner_principal: number | null;
  /** The host, as named in host tokens. */
  host: string;
  /** As in `owner/name`, in the letter case of its remote. */
  repository: string;
  /** The result of repositoryIdentity, by which events find it. */
  identity: string;
  number: number;
  /** Its newest commit; empty until it has been read. */
  head_sha: string;
  /** PullRequest.State by number. */
  state: number;
  /** JSON array: the subjects that set the source of the work when it was opened, see source-setter.ts. */
  source_set_by: string;
  /** Time of its last change: the longer ago it is, the less often it is read. */
  changed_at: number;
  /** Time at which its host last reported its state; null before the first time. */
  seen_at: number | null;
  /** Time of the next reading; null while it is not tracked. */
  next_poll_at: number | null;
  /** Number of readings that have failed since the last successful one. */
  failures: number;
  /** JSON of the answers that the host need not send again, see scm/host-memory.ts. */
  memory: string;
  /** FollowedPullRequest without seen_at. */
  body: string;
}
