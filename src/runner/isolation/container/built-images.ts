import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Mutex } from "../../process/mutex.ts";
import type { Engine } from "./container-arguments.ts";
import { runEngine } from "./engine.ts";
import { chosenImageIn } from "./image-choice.ts";

/** The name of all images built here; their tags identify what they were built from. */
export const BUILT_IMAGES = "localhost/chartroom-devcontainer";

export interface BuiltImagesOptions {
  readonly engine: Pick<Engine, "file" | "environment">;
  /** The folder of the record; it need not exist. */
  readonly folder: string;
  /** Maximum number of images to keep; images that environments use are kept beyond it. */
  readonly most: number;
}

/** The content of the record's file. */
interface BuiltRecord {
  /** The images, least recently used first. */
  readonly images: readonly string[];
  /** The folders that contain, or contained, workspaces with built images. */
  readonly places: readonly string[];
}

/**
 * Limits the number of built images. Beyond the limit, removes the least recently used ones, except images of
 * environments, which would no longer work without them.
 */
export class BuiltImages {
  readonly #options: BuiltImagesOptions;
  readonly #file: string;
  /** Images being chosen, with the number of choices in progress. A completed choice is stored in the workspace. */
  readonly #held = new Map<string, number>();
  readonly #turns = new Mutex();

  constructor(options: BuiltImagesOptions) {
    this.#options = options;
    this.#file = join(options.folder, "built-images.json");
  }

  /**
   * Runs a function that chooses an image for a workspace. Marks the image as used and does not remove it meanwhile.
   */
  async holding<T>(image: string, workspaceFolder: string, choose: () => Promise<T>): Promise<T> {
    this.#held.set(image, (this.#held.get(image) ?? 0) + 1);
    try {
      await this.#turns.run(async () => {
        const { images, places } = await this.#read();
        await this.#write({
          images: [...images.filter((each) => each !== image), image],
          places: [...new Set([...places, dirname(workspaceFolder)])],
        });
      });
      return await choose();
    } finally {
      const count = (this.#held.get(image) ?? 1) - 1;
      if (count === 0) this.#held.delete(image);
      else this.#held.set(image, count);
    }
  }

  /**
   * Removes the images beyond the limit. Retries next time if one cannot be removed, for example because a container
   * uses it.
   */
  removeExcess(): Promise<void> {
    return this.#turns.run(async () => {
      const { engine, most } = this.#options;
      const { isDone, text } = await runEngine(engine, LIST, { mostCharacters: MAX_LISTED });
      if (!isDone) return;
      const there = new Set(text.split("\n").filter((each) => each.startsWith(`${BUILT_IMAGES}:`)));
      const { images, places } = await this.#read();
      // Images from before the record existed are older than all recorded ones.
      const known = images.filter((each) => there.has(each));
      const oldestFirst = [...[...there].filter((each) => !images.includes(each)), ...known];
      const used = new Set([...this.#held.keys(), ...(await imagesOfWorkspaces(places))]);
      let excess = oldestFirst.length - most;
      for (const image of oldestFirst) {
        if (excess <= 0) break;
        if (used.has(image)) continue;
        if ((await runEngine(engine, ["image", "rm", image])).isDone) {
          there.delete(image);
          excess--;
        }
      }
      // An image that is being built does not exist yet.
      const kept = images.filter((each) => there.has(each) || this.#held.has(each));
      await this.#write({ images: kept, places });
    });
  }

  async #read(): Promise<BuiltRecord> {
    try {
      return JSON.parse(await readFile(this.#file, "utf8"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { images: [], places: [] };
      throw error;
    }
  }

  async #write(record: BuiltRecord): Promise<void> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    await writeFile(`${this.#file}.draft`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${this.#file}.draft`, this.#file);
  }
}

/** More than the length of any list of images that an operator may keep. */
const MAX_LISTED = 10_000_000;
const LIST = ["image", "ls", "--no-trunc", "--format={{.Repository}}:{{.Tag}}", BUILT_IMAGES];

/** Returns the images used by the workspaces in these folders. */
async function imagesOfWorkspaces(places: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const place of places) {
    // A removed folder has no workspaces.
    for (const name of await readdir(place).catch(() => [])) {
      const choice = await chosenImageIn(join(place, name));
      if (choice) found.push(choice.image);
    }
  }
  return found;
}
