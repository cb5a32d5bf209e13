import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { remoteForms } from "../../domain/source/remote.ts";
import { isPublicAddress } from "../../scm/public-address.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** The settings that decide which remotes may be reached. */
export interface RemoteSettings {
  /** True if addresses may be private, such as those of a host inside the company. */
  readonly allowPrivateAddresses: boolean;
  /** True if remotes may be folders of this machine (file:///...). */
  readonly allowFiles: boolean;
  /** Hosts in lower case, such as `git.example.org:8080`, that get a credential over plain http. */
  readonly plainHttpHosts: Pick<ReadonlySet<string>, "has">;
}

/** A remote that may be reached, judging by its address alone. */
export interface Remote {
  readonly scheme: "https" | "http" | "ssh" | "file";
  /** The address for git: never with a password, and without a user name for https and http. */
  readonly address: string;
  /** The user in the address; empty when there is none. */
  readonly user: string;
  /**
   * The lower-case name or address, IPv6 in brackets, with the port unless it is
   * the scheme's default; empty for files.
   */
  readonly host: string;
  /** The host without port and brackets. */
  readonly hostname: string;
  readonly port: number;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { https: 443, http: 80, ssh: 22, file: 0 };

/**
 * Excludes a leading dash, which programs read as an option, and characters that only some parsers read as the end of
 * the host.
 */
const HOST_NAME = /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/;
/** The form that git and URL parse identically, up to the path. */
const SSH_FORM = /^ssh:\/\/(\w[\w.+-]*@)?([A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\])(:\d+)?\//;
/** The form that git reads as the name of a remote helper program. */
const HELPER_FORM = /^[A-Za-z0-9+.-]*::/;

/**
 * Parses a remote: https, http, ssh, the scp form (`git@host:owner/repository`), and file if the settings allow it.
 *
 * @throws WorkFailure remote_refused for any other form, and for an address with a password
 */
export function parseRemote(text: string, { allowFiles }: RemoteSettings): Remote {
  const form = remoteForms(text).at(-1) ?? text;
  // Parsers disagree about control characters and white space.
  const isOdd = /[\p{Cc}\p{White_Space}]/u.test(text) || HELPER_FORM.test(text);
  const url = isOdd ? null : URL.parse(form);
  const scheme = url?.protocol.slice(0, -1) ?? "";
  if (!url || !isScheme(scheme)) {
    throw remoteRefused("the remote must be an https, http or ssh address, or user@host:path");
  }
  if (url.password !== "") {
    throw remoteRefused(
      "the remote holds a password: take it out and store it as a host authentication token",
    );
  }
  if (scheme === "file") return fileRemote(url, allowFiles);
  const hostname = url.hostname.toLowerCase().replace(/^\[|\]$/g, "");
  if (isIP(hostname) === 0 && !HOST_NAME.test(hostname))
    throw remoteRefused("the remote's host is no host name");
  if (scheme === "ssh" && !SSH_FORM.test(form)) throw remoteRefused("the remote's user or host is invalid");
  const port = Number(url.port) || (DEFAULT_PORTS[scheme] ?? 0);
  const name = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return {
    scheme,
    address: scheme === "ssh" ? text : withoutUser(url),
    user: scheme === "ssh" ? url.username : decodedUser(url.username),
    host: port === DEFAULT_PORTS[scheme] ? name : `${name}:${port}`,
    hostname,
    port,
  };
}

/** Resolves a host name to at least one address. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/** Resolves like every other program on this machine. */
export const systemResolve: ResolveHost = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
};

/**
 * Returns the checked addresses of a remote's host; none for files. Connect to one of them: a second lookup may
 * return another address.
 *
 * @throws WorkFailure remote_refused when one of them is not public and must be, remote_unreachable when there is
 *   none
 */
export async function resolveCheckedAddresses(
  { scheme, host, hostname }: Remote,
  { allowPrivateAddresses }: RemoteSettings,
  resolve: ResolveHost,
): Promise<readonly string[]> {
  if (scheme === "file") return [];
  const addresses = isIP(hostname) === 0 ? await resolve(hostname).catch(() => []) : [hostname];
  if (addresses.length === 0) {
    throw new WorkFailure("remote_unreachable", `the host ${host} has no address`, true);
  }
  if (!allowPrivateAddresses && !addresses.every(isPublicAddress)) {
    throw remoteRefused(
      `${host} is at an address that is not public: the runner's operator can allow private ones`,
    );
  }
  return addresses;
}

function fileRemote(url: URL, allowFiles: boolean): Remote {
  if (!allowFiles)
    throw remoteRefused("the remote is a folder of the runner's machine: its operator can allow those");
  if (url.host !== "") throw remoteRefused("the remote is a folder of another machine");
  return { scheme: "file", address: url.href, user: "", host: "", hostname: "", port: 0 };
}

function isScheme(scheme: string): scheme is Remote["scheme"] {
  return Object.hasOwn(DEFAULT_PORTS, scheme);
}

function withoutUser(url: URL): string {
  const copy = new URL(url);
  copy.username = "";
  copy.hash = "";
  return copy.href;
}

function decodedUser(username: string): string {
  try {
    return decodeURIComponent(username);
  } catch {
    throw remoteRefused("the remote's user is no user name");
  }
}

/** Returns a failure that omits the remote, which may contain a secret in an unexpected place. */
function remoteRefused(why: string): WorkFailure {
  return new WorkFailure("remote_refused", why);
}
