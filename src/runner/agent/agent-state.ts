import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Workspace, workspaceAt } from "../steps/workspace.ts";
import type { StoreImage } from "./agent-input-encoding.ts";

/**
 * The files of an agent's conversation, which the runner stores in the environment. They survive the loss of a lease
 * and the end of an execution that is resumed later.
 */
export interface AgentState {
  readonly folder: string;
  /** Returns the state folder of another conversation in the environment. */
  folderOf(conversationId: string): string;
  /** The folder of its secret files, which are removed when the agent ends. */
  readonly secretsFolder: string;
  /** The folder of the images in its inputs. */
  readonly imagesFolder: string;
  /** The file that describes the pull request that it works on, if it works on one. */
  readonly pullRequestFile: string;
  /** The number of earlier starts of the program for the conversation. */
  readonly startedBefore: number;
  /** Counts a start and returns the number of starts, this one included. */
  countStart(): Promise<number>;
  /** Stores an image. An image that is delivered again is stored in the same file. */
  readonly storeImage: StoreImage;
}

const SUFFIXES: Readonly<Record<string, string>> = { "image/png": ".png", "image/jpeg": ".jpg" };

/**
 * Opens the state of a conversation. Creates the folder if it does not exist.
 * @param conversationId a UUID
 */
export async function openAgentState(workspace: Workspace, conversationId: string): Promise<AgentState> {
  // workspaceAt checks the id, which becomes part of a path.
  const folderOf = (id: string) => workspaceAt(join(workspace.folder, "agents"), id).folder;
  const folder = folderOf(conversationId);
  const images = join(folder, "images");
  await mkdir(images, { recursive: true, mode: 0o700 });
  const counter = join(folder, "starts");
  const startedBefore = Number(await readFile(counter, "utf8").catch(() => "0"));
  let starts = startedBefore;
  return {
    folder,
    folderOf,
    secretsFolder: join(folder, "secrets"),
    imagesFolder: images,
    pullRequestFile: join(folder, "pull-request.json"),
    startedBefore,
    async countStart() {
      starts++;
      await replace(counter, String(starts));
      return starts;
    },
    async storeImage({ data, mimeType }) {
      const name = createHash("sha256").update(data).digest("hex");
      const file = join(images, `${name}${SUFFIXES[mimeType] ?? ""}`);
      await replace(file, data);
      return file;
    },
  };
}

/** Replaces a file atomically, even if the runner is killed. */
async function replace(file: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${file}.draft`, content);
  await rename(`${file}.draft`, file);
}
