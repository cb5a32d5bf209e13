import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Work, WorkSecret } from "#gen/runner/v1/work_pb.js";
import { placeholderOf } from "../../domain/policy/proxied-secret/credential-proxy.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/**
 * Mounts the secrets of a piece of work and returns the variables for the environment of its processes. A secret that
 * the proxy puts into requests is replaced with a placeholder. Work shares the machine's file system, so secret files
 * are in a folder per piece of work, which CHARTROOM_SECRETS names.
 *
 * @param folder outside the repositories, and removed with the work; emptied first
 * @throws WorkFailure secret_not_mounted
 */
export async function mountSecrets(
  { secrets }: Pick<Work, "secrets">,
  folder: string,
): Promise<Record<string, string>> {
  await unmountSecrets(folder);
  const variables: Record<string, string> = {};
  try {
    for (const secret of secrets.map(asMounted)) {
      if (secret.mount.case === "environmentVariable") variables[secret.name] = secret.value;
      if (secret.mount.case !== "filePath") continue;
      await writeSecret(join(folder, checkedPath(secret, secret.mount.value)), secret);
      variables.CHARTROOM_SECRETS = folder;
    }
  } catch (error) {
    await unmountSecrets(folder);
    throw error;
  }
  return variables;
}

/** Returns a secret with the value that the work gets. */
function asMounted(secret: WorkSecret): WorkSecret {
  const { credentialProxy, secretId } = secret;
  if (!credentialProxy) return secret;
  return { ...secret, value: placeholderOf(secretId), mount: credentialProxy.placeholderMount };
}

/** Removes the files of secrets, if there are any. */
export async function unmountSecrets(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

/** Returns a path that cannot leave the folder, whatever the server sends. */
function checkedPath(secret: WorkSecret, path: string): string {
  const segments = path.split("/").slice(1);
  const isPlain = segments.every((segment) => segment !== "" && segment !== "." && segment !== "..");
  if (!path.startsWith("/") || !isPlain || path.includes("\0"))
    throw notMounted(secret, "its path is refused");
  return path;
}

async function writeSecret(file: string, secret: WorkSecret): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(file, secret.value, { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw notMounted(secret, PROBLEMS[(error as NodeJS.ErrnoException).code ?? ""] ?? "it cannot be written");
  }
}

const BELOW_ANOTHER = "the path of one secret lies below that of another";

/** Messages for the system's errors; its own texts would name the folders of the runner. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EEXIST: BELOW_ANOTHER,
  EISDIR: BELOW_ANOTHER,
  ENOTDIR: BELOW_ANOTHER,
  ENAMETOOLONG: "its path is too long for this machine",
  ENOSPC: "the disk is full",
};

function notMounted({ name, mount }: WorkSecret, why: string): WorkFailure {
  const path = mount.case === "filePath" ? mount.value : "";
  return new WorkFailure("secret_not_mounted", `the secret ${name} with the path ${path} is no file: ${why}`);
}
