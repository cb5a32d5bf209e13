import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";

/** A built file as browsers get it. */
export interface ConsoleFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** The same packed with gzip, where that is shorter. */
  readonly packed?: Uint8Array | undefined;
}

/** The files that `npm run build` has made. */
export interface ConsoleFiles {
  /** The page, in which {@link NONCE_PLACE} stands for the nonce of an answer. */
  readonly page: string;
  /** The files under /assets, by their names, each of which holds the hash of its content. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** Stands in the built page where each answer has its nonce. */
export const NONCE_PLACE = "__NONCE__";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Creates the reader of the built files, which it reads once and keeps. Until they have been built it looks again
 * each time, so that a running server shows them without a restart.
 *
 * @returns undefined from the reader where nothing was built
 */
export function createConsoleFiles(folder: string): () => Promise<ConsoleFiles | undefined> {
  let files: Promise<ConsoleFiles | undefined> | undefined;
  return async () => {
    files ??= readFiles(folder);
    const found = await files.catch(() => undefined);
    if (!found) files = undefined;
    return found;
  };
}

async function readFiles(folder: string): Promise<ConsoleFiles | undefined> {
  const page = join(folder, "index.html");
  if (!(await stat(page).catch(() => undefined))) return undefined;
  const names = await readdir(join(folder, "assets"));
  const read = (name: string) => readFile(join(folder, "assets", name));
  const assets = names
    .filter((name) => extname(name) in TYPES)
    .map(async (name): Promise<readonly [string, ConsoleFile]> => {
      const packed = names.includes(`${name}.gz`) ? await read(`${name}.gz`) : undefined;
      return [name, { type: TYPES[extname(name)] ?? "", bytes: await read(name), packed }];
    });
  return { page: await readFile(page, "utf8"), assets: new Map(await Promise.all(assets)) };
}
