import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import type { GitTools } from "./git-tools.ts";
import { parseRemote, type Remote, resolveCheckedAddresses } from "./remote-address.ts";

/** The credential for a host; the response of GetHostCredential is one. */
export interface GitCredential {
  readonly token: string;
  readonly source: Source;
  /** The id of the token; empty where the service does not name it. */
  readonly hostAuthenticationTokenId?: string;
}

/** The reason, to be read by people, why an existing credential is not handed out. */
export interface WithheldCredential {
  readonly withheld: string;
}

/**
 * Finds the credential for a host; undefined when there is none. `host` has a
 * port where the remote names one.
 */
export type CredentialFor = (host: string) => Promise<GitCredential | WithheldCredential | undefined>;

/** The settings and secrets with which git reaches one remote and no other. */
export interface RemoteAccess {
  readonly remote: Remote;
  /** Settings as `name=value`, without secrets. */
  readonly settings: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Answers a prompt of git about the credential; undefined for a prompt about anything else, and without one. */
  readonly answer?: (prompt: string) => string | undefined;
  /** Texts that must not occur in a message. */
  readonly secrets: readonly string[];
  /** The credential by its name, not its value; undefined when it has none, and nothing may be cached for it. */
  readonly credential: string | undefined;
  /** The reason, to be read by people, why git gets no credential although there may be one. */
  readonly withheld?: string;
}

const NO_CREDENTIAL = "none";

/** The user name that every known host accepts with a token. */
const TOKEN_USER = "oauth2";

/**
 * Checks a remote and finds its address and the credential for it.
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

/** Returns the same access for another address of the same host, such as the one that ends with `.git`. */
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
  // A host that is given as an address needs no lookup.
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
