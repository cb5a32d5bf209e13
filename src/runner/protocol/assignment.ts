import type { Work } from "#gen/runner/v1/work_pb.js";
import { credentialParts } from "../../domain/policy/proxied-secret/credential-proxy.ts";
import { Secrets } from "../../domain/secrets.ts";
import type { Log } from "../../log.ts";
import type { SourceControl } from "../../scm/source-control.ts";
import type { RepositoryCache } from "../cache/repository-cache.ts";
import type { EnvironmentWatch } from "../changes/environment-watch.ts";
import type { Egress } from "../egress/egress.ts";
import type { CredentialFor } from "../git/git-access.ts";
import type { GitTools } from "../git/git-tools.ts";
import type { Isolation } from "../isolation/isolation.ts";
import type { Programs } from "../process/command.ts";
import type { Limiter } from "../process/limiter.ts";
import type { WorkClient } from "./connection.ts";
import type { Lease } from "./lease.ts";
import type { WorkFailure } from "./work-failure.ts";

/** The parts of a runner that all work shares. */
export interface RunnerTools {
  /** Runs the runner's own programs; `isolation` runs those of work. */
  readonly programs: Programs;
  readonly isolation: Isolation;
  /** Opens networks for isolated work; undefined when work is not isolated. */
  readonly egress?: Egress | undefined;
  readonly git: GitTools;
  readonly scm: SourceControl;
  /** The cache of cloned repositories; none when absent. */
  readonly repositoryCache?: RepositoryCache | undefined;
  /** Reports changes in workspaces; absent in tests that do not need it. */
  readonly watch?: EnvironmentWatch | undefined;
  /** Reports connections of work; absent in tests that do not need it. */
  readonly connections?: Pick<WorkClient, "reportEnvironmentConnections"> | undefined;
  /** The folder of the environments' workspaces. */
  readonly workspaces: string;
  /** The folder of the prepared workspaces. */
  readonly prebuilds: string;
  /** Folders whose `workspaces` and `prebuilds` may still hold workspaces; none when absent. */
  readonly earlierWorkDirs?: readonly string[];
  /** Limits how many environments are created concurrently for agents. */
  readonly newEnvironments: Limiter;
  /** The URL at which commands reach the service. */
  readonly serverUrl: string;
  /** True if agents defined through the API may run; false when absent. */
  readonly apiAgents?: boolean;
  readonly log: Log;
}

/** A piece of work with everything needed to execute it. */
export interface Assignment {
  readonly tools: RunnerTools;
  readonly work: Work;
  readonly lease: Lease;
  /** Texts to mask in all output of the work. */
  readonly secrets: Secrets;
  /** Ids of the secrets that are given to the work itself. */
  readonly secretIds: readonly string[];
  /** Finds the credentials of the work's executor. */
  readonly credentialFor: CredentialFor;
  /** Warnings for people, reported whether the work succeeds, fails or is stopped. */
  readonly warnings: WorkFailure[];
}

export function newAssignment(tools: RunnerTools, work: Work, lease: Lease): Assignment {
  const secrets = new Secrets();
  secrets.add(work.environmentToken);
  for (const { value, credentialProxy } of work.secrets)
    for (const part of credentialProxy ? credentialParts(value) : [value]) secrets.add(part);
  return {
    tools,
    work,
    lease,
    secrets,
    secretIds: work.secrets.filter((secret) => !secret.credentialProxy).map(({ secretId }) => secretId),
    warnings: [],
    async credentialFor(host) {
      const credential = await lease.credential(host);
      if (credential && "token" in credential) secrets.add(credential.token);
      return credential;
    },
  };
}
