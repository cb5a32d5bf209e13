import { valueUnusable } from "../error.ts";

/** A host that a remote may have: a name, an IPv4 address, or an IPv6 address, which URL has checked. */
const HOST_NAME = /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$|^\[/;

/** A label of a name that DNS can resolve; git hosts also have underscores. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Returns the host of a new credential in the form that remotes are looked up by: in lower case, with the port unless
 * it is that of https.
 * @throws DomainError VALUE_UNUSABLE when no remote can have such a host, such as a URL
 */
export function credentialHost(given: string): string {
  const host = given.toLowerCase();
  const text = host.trim();
  const meant = hostOf(URL.parse(text.includes("://") ? text : `https://${text}`));
  if (meant === host) return host;
  const examples = meant ?? "git.example.org or git.example.org:8443";
  throw valueUnusable(
    "host",
    "host must be the name of a source-control host as remotes have it, without scheme, user, path or the " +
      `port 443, such as ${examples}`,
  );
}

function hostOf(url: URL | null): string | undefined {
  if (!url || url.port === "0" || !HOST_NAME.test(url.hostname)) return undefined;
  const isKnown = url.hostname.startsWith("[") || url.hostname.split(".").every((label) => LABEL.test(label));
  return isKnown ? url.host : undefined;
}
