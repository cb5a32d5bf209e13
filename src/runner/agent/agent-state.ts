import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Workspace, workspaceAt } from "../steps/workspace.ts";
import type { StoreImage } from "./agent-input-encoding.ts";

/**
 * The files about an agent's conversation that a runner stores in its environment,
 * so that they survive a lost lease, and the end of an execution that is resumed.
 */
export interface AgentState {
  readonly folder: string;
  /** Returns the folder of the files about another conversation in the environment. */
  folderOf(conversationId: string): string;
  /** The folder of the files of its secrets, which no state survives in. */
  readonly secretsFolder: string;
  /** The folder of the images of its inputs. */
  readonly imagesFolder: string;
  /** The file of the pull request that it works on, where there is one. */
  readonly pullRequestFile: string;
  /** The number of earlier starts of the program for the conversation. */
  readonly startedBefore: number;
  /** Counts a start; returns the number of starts including it. */
  countStart(): Promise<number>;
  /** Stores an image; the same image has the same file, however often it is delivered. */
  readonly storeImage: StoreImage;
}

const SUFFIXES: Readonly<Record<string, string>> = { "image/png": ".png", "image/jpeg": ".jpg" };

/**
 * Opens the state of a conversation; the folder is created if it does not exist.
 * @param conversationId a UUID
 */
export async function openAgentState(workspace: Workspace, conversationId: string): Promise<AgentState> {
  // The id becomes a path, as the id of an environment does.
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

/** Replaces a file atomically, also when the runner is killed. */
async function replace(file: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${file}.draft`, content);
  await rename(`${file}.draft`, file);
}
