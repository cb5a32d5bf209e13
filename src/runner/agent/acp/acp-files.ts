import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, relative } from "node:path";
import {
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  RequestError,
  type WriteTextFileRequest,
} from "@agentclientprotocol/sdk";

/** Largest file that is read at once, in bytes. */
const MAX_FILE_BYTES = 16_777_216;

/** True when a file existed before it was written. */
export type Written = "created" | "modified";

/** Serves an agent's requests for files of its working tree; a path that leads out of it is refused. */
export class WorkspaceFiles {
  /** The real path of the folder that no path leads out of: looked up before an agent could make it a link. */
  readonly tree: Promise<string>;

  /** @param tree the folder that no path leads out of */
  constructor(tree: string) {
    this.tree = realpath(tree);
    // Whoever needs it learns of the failure.
    this.tree.catch(() => undefined);
  }

  /** @throws RequestError */
  async read({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    const file = await this.resolve(path);
    const text = await withFile(file, constants.O_RDONLY, path, async (handle) => {
      const { size } = await handle.stat();
      if (size > MAX_FILE_BYTES) throw refused(path, `it has ${size} bytes: ${MAX_FILE_BYTES} is the most`);
      return handle.readFile("utf8");
    });
    if (!line && !limit) return { content: text };
    const lines = text.split(/(?<=\n)/);
    const from = Math.max(0, (line ?? 1) - 1);
    return { content: lines.slice(from, limit ? from + limit : undefined).join("") };
  }

  /** @throws RequestError */
  async write({ path, content }: WriteTextFileRequest): Promise<Written> {
    const file = await this.resolve(path);
    const before = await lstat(file).catch(() => undefined);
    await mkdir(dirname(file), { recursive: true }).catch((error) => {
      throw refused(path, reasonOf(error));
    });
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
    await withFile(file, flags, path, (handle) => handle.writeFile(content));
    return before ? "modified" : "created";
  }

  /**
   * Returns the real path of a file or folder in the tree, which need not exist.
   * @throws RequestError for a path that is not absolute or leads out of the tree, also by a symbolic link
   */
  async resolve(path: string): Promise<string> {
    if (!isAbsolute(path)) throw refused(path, "it is not absolute");
    if (path.includes("\0")) throw refused(path, "it has a zero character");
    const tree = await this.tree;
    // Without `..`: a folder that does not exist would cancel it, and with it a link that nobody has resolved.
    const real = await realPathOf(normalize(path));
    const inside = relative(tree, real);
    if (inside === ".." || inside.startsWith("../") || isAbsolute(inside))
      throw refused(path, "it leads out of the workspace");
    return real;
  }
}

/** Returns the path without symbolic links; what does not exist yet is taken as it is. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const isLink = await lstat(path)
      .then((stat) => stat.isSymbolicLink())
      .catch(() => false);
    // A link to nothing would be written through.
    if (isLink || (error as NodeJS.ErrnoException).code !== "ENOENT") throw refused(path, reasonOf(error));
    const parent = dirname(path);
    if (parent === path) return path;
    return join(await realPathOf(parent), basename(path));
  }
}

async function withFile<T>(
  file: string,
  flags: number,
  path: string,
  act: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    // Not through a link that has come since the path was resolved, and not waiting for a pipe's other end.
    handle = await open(file, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) throw refused(path, "it is no file");
    return await act(handle);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw RequestError.resourceNotFound(path);
    throw refused(path, reasonOf(error));
  } finally {
    await handle?.close();
  }
}

function refused(path: string, why: string): RequestError {
  return RequestError.invalidParams({ path }, `${path}: ${why}`);
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "it cannot be used";
}
