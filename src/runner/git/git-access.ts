import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import type { GitTools } from "./git-tools.ts";
import { checkedAddresses, parseRemote, type Remote } from "./remote-address.ts";

/** What opens a host; the answer of GetHostCredential is one. */
export interface GitCredential {
  readonly token: string;
  readonly source: Source;
}

/** Why nothing opens a host although something could, to be read by people. */
export interface WithheldCredential {
  readonly withheld: string;
}

/** Finds what opens a host; undefined when nothing does. `host` has a port where the remote names one. */
export type CredentialFor = (host: string) => Promise<GitCredential | WithheldCredential | undefined>;

/** What git gets so that it reaches one remote and no other. */
export interface RemoteAccess {
  readonly remote: Remote;
  /** Settings as `name=value`, without secrets. */
  readonly settings: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** What must not stand in a message. */
  readonly secrets: readonly string[];
  /** Why git gets no credential although there may be one, to be read by people. */
  readonly withheld?: string;
}

/** The user name that every known host takes with a token. */
const TOKEN_USER = "oauth2";

/**
 * Checks a remote, finds its address and what opens it.
 *
 * @throws WorkFailure remote_refused or remote_unreachable
 */
export async function accessTo(
  tools: GitTools,
  remoteUri: string,
  credentialFor: CredentialFor,
): Promise<RemoteAccess> {
  const remote = parseRemote(remoteUri, tools.remotes);
  const addresses = await checkedAddresses(remote, tools.remotes, tools.resolve);
  switch (remote.scheme) {
    case "file":
      return { remote, settings: [], environment: {}, secrets: [] };
    case "ssh":
      return { remote, settings: [], environment: sshEnvironment(tools, remote, addresses), secrets: [] };
    default: {
      const found = isReadOnItsWay(tools, remote)
        ? { withheld: withheldFromPlainHttp(remote.host) }
        : await credentialFor(remote.host);
      if (found && "withheld" in found) {
        return { ...httpAccess(tools, remote, addresses, undefined), withheld: found.withheld };
      }
      return httpAccess(tools, remote, addresses, found);
    }
  }
}

function isReadOnItsWay({ remotes }: GitTools, { scheme, host }: Remote): boolean {
  return scheme === "http" && !remotes.plainHttpHosts.has(host);
}

function withheldFromPlainHttp(host: string): string {
  return (
    `${host} wants a credential, and none is sent over plain http: use its https address, ` +
    "or have the runner's operator name it in --plain-http-hosts"
  );
}

/** The same for another address of the same host, such as the one with `.git` at its end. */
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
  // A host that is written as an address is not looked up.
  const settings = addresses[0] === hostname ? [] : [`http.curloptResolve=${hostname}:${port}:${pinned}`];
  if (!credential) return { remote, settings, environment: {}, secrets: [] };
  const user = credential.source === Source.OAUTH ? TOKEN_USER : remote.user || TOKEN_USER;
  const { token } = credential;
  return {
    remote,
    settings,
    environment: {
      GIT_ASKPASS: tools.askPass,
      CHARTROOM_GIT_SCHEME: scheme,
      CHARTROOM_GIT_HOST: host,
      CHARTROOM_GIT_USER: user,
      CHARTROOM_GIT_TOKEN: token,
    },
    secrets: [token, Buffer.from(`${user}:${token}`).toString("base64")],
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
