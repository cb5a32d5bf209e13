import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Workspace, workspaceAt } from "../steps/workspace.ts";
import type { KeepImage } from "./agent-input-encoding.ts";

/** What a runner keeps of an agent's run in its environment, so that it is there after a lost lease. */
export interface AgentState {
  readonly folder: string;
  /** How often the run's program was started before in this environment. */
  readonly startedBefore: number;
  /** Counts a start; how many there have been with it. */
  countStart(): Promise<number>;
  /** The same image has the same file, however often it is delivered. */
  readonly keepImage: KeepImage;
}

const SUFFIXES: Readonly<Record<string, string>> = { "image/png": ".png", "image/jpeg": ".jpg" };

/** Makes the folder where it is not there. @param runId a UUID */
export async function agentStateIn(workspace: Workspace, runId: string): Promise<AgentState> {
  // It becomes a path, as the id of an environment does.
  const { folder } = workspaceAt(join(workspace.folder, "agents"), runId);
  const images = join(folder, "images");
  await mkdir(images, { recursive: true, mode: 0o700 });
  const counter = join(folder, "starts");
  const startedBefore = Number(await readFile(counter, "utf8").catch(() => "0"));
  let starts = startedBefore;
  return {
    folder,
    startedBefore,
    async countStart() {
      starts++;
      await replace(counter, String(starts));
      return starts;
    },
    async keepImage({ data, mimeType }) {
      const name = createHash("sha256").update(data).digest("hex");
      const file = join(images, `${name}${SUFFIXES[mimeType] ?? ""}`);
      await replace(file, data);
      return file;
    },
  };
}

/** Whole or not at all, also when the runner is killed. */
async function replace(file: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${file}.draft`, content);
  await rename(`${file}.draft`, file);
}
