import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { platform } from "node:os";
import { basename, dirname, isAbsolute, join, normalize, relative } from "node:path";
import {
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  RequestError,
  type WriteTextFileRequest,
} from "@agentclientprotocol/sdk";

/** Maximum size of a file that is read as a whole, in bytes. */
const MAX_FILE_BYTES = 16_777_216;

/** True when a file existed before it was written. */
export type Written = "created" | "modified";

/** Serves an agent's requests for files of its working tree; a path that leads out of it is refused. */
export class WorkspaceFiles {
  /** The real path of the folder that no path may leave, resolved before an agent could replace it by a link. */
  readonly tree: Promise<string>;

  readonly #owner: number | undefined;

  /**
   * @param tree the folder that no path may leave
   * @param owner the id of the user and group of new files; undefined for the runner's own
   */
  constructor(tree: string, owner: number | undefined) {
    this.#owner = owner;
    this.tree = realpath(tree);
    // The failure is reported to the callers that await it.
    this.tree.catch(() => undefined);
  }

  /** @throws RequestError */
  async read({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    const file = await this.resolve(path);
    const text = await this.#withFile(file, constants.O_RDONLY, path, async (handle) => {
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
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
    await this.#withFile(file, flags, path, async (handle) => {
      await this.#own(handle);
      await handle.writeFile(content);
    });
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
    // Normalized first: `..` after a folder that does not exist would skip a link that was not resolved.
    const real = await realPathOf(normalize(path));
    const inside = relative(tree, real);
    if (inside === ".." || inside.startsWith("../") || isAbsolute(inside))
      throw refused(path, "it leads out of the workspace");
    return real;
  }

  /**
   * Opens a file folder by folder, each through the descriptor of its parent: the agent, which runs at the same time,
   * could replace any of them by a link out of the tree.
   */
  async #withFile<T>(
    file: string,
    flags: number,
    path: string,
    act: (handle: FileHandle) => Promise<T>,
  ): Promise<T> {
    const handles: FileHandle[] = [];
    const tree = await this.tree;
    const names = relative(tree, file).split("/");
    const last = names.pop() ?? "";
    try {
      let folder = await open(tree, FOLDER);
      handles.push(folder);
      let at = tree;
      for (const name of names) {
        const inside = pathIn(folder, at, name);
        if (flags & constants.O_CREAT) await this.#makeFolder(inside);
        folder = await open(inside, FOLDER);
        handles.push(folder);
        at = join(at, name);
      }
      // Does not wait for the other end of a named pipe.
      const handle = await open(
        pathIn(folder, at, last),
        flags | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      );
      handles.push(handle);
      if (!(await handle.stat()).isFile()) throw refused(path, "it is no file");
      return await act(handle);
    } catch (error) {
      if (error instanceof RequestError) throw error;
      if ((error as NodeJS.ErrnoException).code === "ENOENT") throw RequestError.resourceNotFound(path);
      throw refused(path, reasonOf(error));
    } finally {
      for (const handle of handles) await handle.close();
    }
  }

  async #makeFolder(path: string): Promise<void> {
    const isNew = await mkdir(path).then(
      () => true,
      (error) => {
        if (error.code !== "EEXIST") throw error;
        return false;
      },
    );
    if (!isNew) return;
    const handle = await open(path, FOLDER);
    await this.#own(handle).finally(() => handle.close());
  }

  async #own(handle: FileHandle): Promise<void> {
    if (this.#owner !== undefined) await handle.chown(this.#owner, this.#owner);
  }
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Returns the path of a name in an open folder, even if the folder was moved. */
function pathIn(folder: FileHandle, path: string, name: string): string {
  return join(platform() === "linux" ? `/proc/self/fd/${folder.fd}` : path, name);
}

/** Returns the path without symbolic links; parts that do not exist yet are kept unchanged. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const isLink = await lstat(path)
      .then((stat) => stat.isSymbolicLink())
      .catch(() => false);
    // A write would follow a dangling link.
    if (isLink || (error as NodeJS.ErrnoException).code !== "ENOENT") throw refused(path, reasonOf(error));
    const parent = dirname(path);
    if (parent === path) return path;
    return join(await realPathOf(parent), basename(path));
  }
}

function refused(path: string, why: string): RequestError {
  return RequestError.invalidParams({ path }, `${path}: ${why}`);
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "it cannot be used";
}
