import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/** The length of a secret in the key file, in bytes. */
export const SECRET_BYTES = 32;

/**
 * Reads the secrets in the key file, newest first. If the file does not exist, it
 * is created with one secret and is readable by its owner only.
 *
 * @throws when the file cannot be read or holds no secret
 */
export function readKeyFile(file: string): Buffer[] {
  if (!existsSync(file)) createKeyFile(file);
  return readSecrets(file);
}

/** Creates the key file atomically, so that no other process and no later start finds an incomplete key. */
function createKeyFile(file: string): void {
  const draft = writeDraft(file, [randomBytes(SECRET_BYTES)]);
  try {
    // Unlike a rename, a link fails when another process was first; then that process's file is read.
    linkSync(draft, file);
    flushFolder(file);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes a complete file next to the real one, readable by its owner only; returns its name. */
function writeDraft(file: string, secrets: readonly Buffer[]): string {
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  writeFileSync(draft, fileText(secrets), { mode: 0o600, flag: "wx", flush: true });
  return draft;
}

/**
 * Adds a new secret before the others. The file is replaced atomically, so that
 * after a kill it is either the old or the new one. It is flushed to disk before
 * this returns: otherwise a crash could lose a secret with which values were
 * already encrypted.
 *
 * @returns all secrets, newest first
 * @throws when the file cannot be read or replaced; then it is unchanged
 */
export function addSecret(file: string): Buffer[] {
  // A symbolic link to the file remains a link.
  const real = realpathSync(file);
  const secrets = [randomBytes(SECRET_BYTES), ...readSecrets(real)];
  const draft = writeDraft(real, secrets);
  try {
    // When another user, such as root, rotates the secret, the file must stay readable to the server's user.
    const { uid, gid } = statSync(real);
    chownSync(draft, uid, gid);
    renameSync(draft, real);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  flushFolder(real);
  return secrets;
}

/** Flushes the folder, so that the file's name is durable too, not only its content. */
function flushFolder(file: string): void {
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Returns whether every user of the machine may read or write a file. */
export function isOpenToAll(file: string): boolean {
  return (statSync(file).mode & 0o007) !== 0;
}

function fileText(secrets: readonly Buffer[]): string {
  return `${JSON.stringify({ version: 2, secrets: secrets.map((secret) => secret.toString("base64")) })}\n`;
}

/**
 * Reads the secrets in an existing key file, newest first.
 * @throws when the file cannot be read or holds no secret; the message quotes none of its content
 */
export function readSecrets(file: string): Buffer[] {
  let content: { secret?: unknown; secrets?: unknown };
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    // Not the parser's own message: it may quote the content of the file.
    throw new Error(
      `the key file ${file} cannot be read${error instanceof SyntaxError ? ": it is no JSON" : ""}`,
    );
  }
  // The first format of the file held one secret.
  const texts = Array.isArray(content?.secrets) ? content.secrets : [content?.secret];
  if (texts.length === 0) throw new Error(`the key file ${file} holds no key`);
  return texts.map((text: unknown) => {
    const bytes = typeof text === "string" ? Buffer.from(text, "base64") : Buffer.alloc(0);
    if (bytes.length !== SECRET_BYTES)
      throw new Error(`the key file ${file} holds no key of ${SECRET_BYTES} bytes`);
    return bytes;
  });
}
