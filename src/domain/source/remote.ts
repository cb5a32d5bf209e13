/**
 * user@host:path, the form that scp introduced; no slash before the colon, and an IPv6 address as
 * host is in brackets.
 */
const SCP_FORM = /^([^\s/@:[]+@)?([^\s/@:[]+|\[[0-9a-fA-F:.]+\]):(?!\/\/)(.+)$/;

/** Transports that git may clone from; a setting of the runner decides about `file:`. */
const CLONE_PROTOCOLS = new Set(["https:", "http:", "ssh:", "file:"]);

/**
 * Returns whether a text names a repository in a form that runners clone: a URL of https, http, ssh
 * or file, or the scp form. It rejects all that git or ssh would read as an option, as a local path
 * or as a transport of a helper (`ext::`).
 */
export function isClonable(remote: string): boolean {
  if (/^-|^[\w+.-]*::/.test(remote)) return false;
  const url = URL.parse(sshForm(remote) ?? remote);
  if (!url || !CLONE_PROTOCOLS.has(url.protocol) || url.pathname.replaceAll("/", "") === "") return false;
  if (!remote.includes("://") && sshForm(remote) === undefined) return false;
  return url.protocol === "file:" ? url.hostname === "" : !/^-|^$/.test(url.hostname);
}

/**
 * Returns the forms under which an exact match finds a stored remote: as given, and for the scp
 * form also as the ssh:// URI of the same repository.
 */
export function remoteForms(remote: string): string[] {
  const ssh = sshForm(remote);
  return ssh === undefined ? [remote] : [remote, ssh];
}

function sshForm(remote: string): string | undefined {
  if (remote.includes("://")) return undefined;
  const [, user = "", host, path] = SCP_FORM.exec(remote) ?? [];
  if (host === undefined || path === undefined) return undefined;
  return `ssh://${user}${host}/${path.replace(/^\/+/, "")}`;
}

/**
 * Returns the name of the repository behind a remote or context URL: its last path segment without
 * `.git`, as it is written there; empty when there is none.
 */
export function repositoryName(remote: string): string {
  const withoutQuery = remote.replace(/[?#].*$/u, "");
  const path = withoutQuery.includes("://")
    ? withoutQuery.replace(/^[^:]+:\/\/[^/]*/u, "")
    : (SCP_FORM.exec(withoutQuery)?.[3] ?? withoutQuery);
  const segment = path.replace(/\/+$/u, "").split("/").at(-1) ?? "";
  return segment.replace(/\.git$/u, "");
}
