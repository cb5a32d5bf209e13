import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import type { GitTools } from "./git-tools.ts";
import { parseRemote, type Remote, resolveCheckedAddresses } from "./remote-address.ts";

/** The credential for a host, in the shape of the response of GetHostCredential. */
export interface GitCredential {
  readonly token: string;
  readonly source: Source;
  /** The id of the token; empty where the service does not name it. */
  readonly hostAuthenticationTokenId?: string;
}

/** Why an existing credential is withheld, as a message for people. */
export interface WithheldCredential {
  readonly withheld: string;
}

/**
 * Finds the credential for a host; undefined when there is none. `host` includes the port when the remote's address
 * does.
 */
export type CredentialFor = (host: string) => Promise<GitCredential | WithheldCredential | undefined>;

/** The settings and secrets that let git reach one remote and no other. */
export interface RemoteAccess {
  readonly remote: Remote;
  /** Settings as `name=value`, without secrets. */
  readonly settings: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Answers git's prompts for the credential; returns undefined for any other prompt. Absent without a credential. */
  readonly answer?: (prompt: string) => string | undefined;
  /** Texts that must not occur in a message. */
  readonly secrets: readonly string[];
  /**
   * Identifies the credential without its value; undefined when it cannot be identified, and then nothing is cached
   * for it.
   */
  readonly credential: string | undefined;
  /** Why git gets no credential although one may exist, as a message for people. */
  readonly withheld?: string;
}

const NO_CREDENTIAL = "none";

/** The user name that every known host accepts together with a token. */
const TOKEN_USER = "oauth2";

/**
 * Checks a remote and resolves its address and credential.
 *
 * @throws WorkFailure remote_refused or remote_unreachable
 */
export async function resolveRemoteAccess(
  tools: GitTools,
  remoteUri: string,
  credentialFor: CredentialFor,
): Promise<RemoteAccess> {
  const remote = parseRemote(remoteUri, tools.remotes);
  const addresses = await resolveCheckedAddresses(remote, tools.remotes, tools.resolve);
  switch (remote.scheme) {
    case "file":
      return { remote, settings: [], environment: {}, secrets: [], credential: NO_CREDENTIAL };
    case "ssh": {
      const environment = sshEnvironment(tools, remote, addresses);
      return { remote, settings: [], environment, secrets: [], credential: "ssh key" };
    }
    default: {
      const found = isUnencrypted(tools, remote)
        ? { withheld: unencryptedAdvice(remote.host) }
        : await credentialFor(remote.host);
      if (found && "withheld" in found) {
        return { ...httpAccess(tools, remote, addresses, undefined), withheld: found.withheld };
      }
      return httpAccess(tools, remote, addresses, found);
    }
  }
}

function isUnencrypted({ remotes }: GitTools, { scheme, host }: Remote): boolean {
  return scheme === "http" && !remotes.plainHttpHosts.has(host);
}

function unencryptedAdvice(host: string): string {
  return (
    `${host} wants a credential, and none is sent over plain http: use its https address, ` +
    "or have the runner's operator name it in --plain-http-hosts"
  );
}

/** Returns the same access for another address on the same host, such as the one with the `.git` suffix. */
export function accessToSibling(access: RemoteAccess, address: string): RemoteAccess {
  return { ...access, remote: { ...access.remote, address } };
}

function httpAccess(
  tools: GitTools,
  remote: Remote,
  addresses: readonly string[],
  credential: GitCredential | undefined,
): RemoteAccess {
  const { scheme, host, hostname, port } = remote;
  const pinned = addresses.map((address) => (address.includes(":") ? `[${address}]` : address)).join(",");
  // An IP address needs no lookup.
  const settings = addresses[0] === hostname ? [] : [`http.curloptResolve=${hostname}:${port}:${pinned}`];
  if (!credential) return { remote, settings, environment: {}, secrets: [], credential: NO_CREDENTIAL };
  const user = credential.source === Source.OAUTH ? TOKEN_USER : remote.user || TOKEN_USER;
  const { token, hostAuthenticationTokenId: id = "" } = credential;
  return {
    remote,
    settings,
    environment: { GIT_ASKPASS: tools.askPass },
    answer(prompt) {
      if (prompt === `Username for '${scheme}://${host}': `) return user;
      const isPassword = prompt.startsWith(`Password for '${scheme}://`) && prompt.endsWith(`@${host}': `);
      return isPassword ? token : undefined;
    },
    secrets: [token, Buffer.from(`${user}:${token}`).toString("base64")],
    credential: id === "" ? undefined : `host authentication token ${id}`,
  };
}

function sshEnvironment(
  tools: GitTools,
  { host }: Remote,
  [address = ""]: readonly string[],
): Record<string, string> {
  return {
    GIT_SSH: tools.ssh,
    GIT_SSH_VARIANT: "ssh",
    CHARTROOM_SSH_ADDRESS: address,
    CHARTROOM_SSH_HOST: host,
    CHARTROOM_SSH_KEY: tools.sshKeyFile ?? "none",
    CHARTROOM_SSH_KNOWN_HOSTS: `${tools.home}/known_hosts`,
  };
}
