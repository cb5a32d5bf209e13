/**
 * user@host:path, the form that secure copy made common; no slash before the
 * colon, and an IPv6 address as host stands in brackets.
 */
const SCP_FORM = /^([^\s/@:[]+@)?([^\s/@:[]+|\[[0-9a-fA-F:.]+\]):(?!\/\/)(.+)$/;

/**
 * The forms under which a stored remote is found by an exact match: as given,
 * and for the scp form also as the ssh:// URI of the same repository.
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
 * Name of the repository behind a remote or context URL: its last path segment
 * without `.git`, as it is written there; empty when there is none.
 */
export function repositoryName(remote: string): string {
  const withoutQuery = remote.replace(/[?#].*$/u, "");
  const path = withoutQuery.includes("://")
    ? withoutQuery.replace(/^[^:]+:\/\/[^/]*/u, "")
    : (SCP_FORM.exec(withoutQuery)?.[3] ?? withoutQuery);
  const segment = path.replace(/\/+$/u, "").split("/").at(-1) ?? "";
  return segment.replace(/\.git$/u, "");
}
