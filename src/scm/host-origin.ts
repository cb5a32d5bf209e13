import { ScmFailure } from "./failure.ts";
import type { ScmSettings } from "./settings.ts";

/**
 * Returns the root of a host's pages and repositories, such as
 * `https://git.example.org:8443`.
 *
 * @param host a name or an address, IPv6 in brackets, with a port or without one
 * @throws ScmFailure refused when it is anything else
 */
export function hostOrigin(host: string, { plainHttpHosts }: ScmSettings): string {
  const scheme = plainHttpHosts.has(host) ? "http" : "https";
  // Characters that could end the host's part of a URL, or precede it.
  const url = /[\s/?#@\\%]/u.test(host) ? null : URL.parse(`${scheme}://${host}`);
  if (url === null) {
    throw new ScmFailure(
      "refused",
      JSON.stringify(host),
      "is no host: write its name, and its port after a colon",
    );
  }
  return url.origin;
}
