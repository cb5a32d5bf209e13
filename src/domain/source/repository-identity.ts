import { remoteForms } from "./remote.ts";

/** The transports that reach the same repository, with their default ports. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = {
  "https:": "443",
  "http:": "80",
  "ssh:": "22",
  "git:": "9418",
};

/**
 * Returns `host[:port]/path` of the repository behind a remote or web URL. The result is the same
 * for every spelling: by https, http, ssh, git or in the scp form, with or without a user, the
 * default port or `.git`. The path is in lower case too: no host whose events are read distinguishes
 * repositories by case. Undefined for a remote without a host, such as a local path or `file:`.
 */
export function repositoryIdentity(remote: string): string | undefined {
  const url = URL.parse(remoteForms(remote).at(-1) ?? remote);
  const defaultPort = url ? DEFAULT_PORTS[url.protocol] : undefined;
  if (!url || defaultPort === undefined || url.hostname === "") return undefined;
  const segments = url.pathname.split("/").filter((segment) => segment !== "");
  const path = segments
    .join("/")
    .toLowerCase()
    .replace(/\.git$/u, "");
  if (path === "" || path.endsWith("/")) return undefined;
  const port = url.port === "" || url.port === defaultPort ? "" : `:${url.port}`;
  return `${url.hostname.toLowerCase()}${port}/${path}`;
}

/**
 * Returns the lower-case host name behind a remote or web URL; undefined where {@link
 * repositoryIdentity} is.
 */
export function repositoryHost(remote: string): string | undefined {
  return repositoryIdentity(remote)?.split("/")[0]?.replace(/:\d+$/u, "");
}
