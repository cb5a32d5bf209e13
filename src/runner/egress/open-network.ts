import type { Environment } from "#gen/service/v1/environment_pb.js";
import { ForkEgress } from "#gen/service/v1/fork_work_pb.js";
import { isWithheld } from "../../domain/policy/work-secrets.ts";
import { Secrets } from "../../domain/secrets.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Lease } from "../protocol/lease.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Workspace } from "../steps/workspace.ts";
import { ConnectionReports } from "./connection-reports.ts";
import type { OpenNetwork } from "./egress.ts";

/** The part of an assignment that openNetwork needs. */
type NetworkedAssignment = Pick<Assignment, "tools" | "work" | "secrets" | "warnings"> & {
  readonly lease: Pick<Lease, "isLost">;
};

/**
 * Opens the network access of a piece of work's commands and reports their connections. Returns undefined if the runner
 * isolates nothing and the commands use the machine's network.
 *
 * @throws WorkFailure policy_unsupported if the commands would use the machine's network although the organization, or
 *   the trigger of work that a fork began, restricts what they may reach
 */
export async function openNetwork(
  { tools, work, lease, secrets, warnings }: NetworkedAssignment,
  { folder }: Pick<Workspace, "folder">,
  environment: Environment | undefined,
): Promise<OpenNetwork | undefined> {
  const policy = work.policies?.egress;
  const { forkEgress = ForkEgress.UNSPECIFIED } = environment?.metadata ?? {};
  if (!tools.egress && policy) {
    throw new WorkFailure(
      "policy_unsupported",
      "this runner isolates nothing and cannot keep egress: let a runner with isolation do the work, or change the organization's policies",
    );
  }
  if (!tools.egress && forkEgress === ForkEgress.SOURCES) {
    throw new WorkFailure(
      "policy_unsupported",
      "a pull request from a fork began the work, or may have, and this runner isolates nothing: let a runner with isolation do it, or allow the workflow's trigger forkWork.egress FORK_EGRESS_POLICY",
    );
  }
  const proxied = work.secrets.flatMap(({ secretId, name, value, credentialProxy }) =>
    credentialProxy ? [{ ...credentialProxy, secretId, name, value }] : [],
  );
  if (!tools.egress) {
    warnings.push(...proxied.map(({ name }) => notPutIn(name)));
    return undefined;
  }
  const abandoned = new AbortController();
  const reports =
    tools.connections &&
    new ConnectionReports(tools.connections, environment?.id ?? "", tools.log, abandoned.signal);
  // A host name may contain a secret, in lower case.
  const masked = new Secrets();
  masked.addAll(secrets);
  masked.addInLowerCase(secrets);
  const network = await tools.egress.open({
    folder,
    initializer: environment?.spec?.content?.initializer,
    policy,
    sourcesOnly: environment !== undefined && isWithheld(environment) && forkEgress !== ForkEgress.POLICY,
    secrets: proxied,
    maskHost: (host) => masked.maskText(host),
    onConnection(connection) {
      if (connection.refusal !== undefined || policy?.recordAllowed) reports?.add(connection);
    },
  });
  return {
    ...network,
    async close() {
      await network.close();
      if (lease.isLost) abandoned.abort();
      await reports?.settled();
    },
  };
}

function notPutIn(name: string): WorkFailure {
  return new WorkFailure(
    "secret_not_put_in",
    `the secret ${name} has a credential proxy, and this runner isolates nothing and has none: no request gets it; let a runner with isolation do the work`,
  );
}
