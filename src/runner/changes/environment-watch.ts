import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Secrets } from "../../domain/secrets.ts";
import type { Log } from "../../log.ts";
import type { GitTools } from "../git/git-tools.ts";
import { backOffMs, pause } from "../protocol/back-off.ts";
import { CALL_MS, classifyFailure, isUnknownOperation, type WorkClient } from "../protocol/connection.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { beginTurn, type ChangesReport, reportChanges, type WatchedWorkspace } from "./environment-report.ts";
import { changesFolderOf } from "./tree-repository.ts";

/** Time in which a report is repeated while the server is unreachable. */
const REPEAT_MS = 15_000;

/**
 * Reports what changes in the workspaces of environments. Looking takes time, so that agents and steps do not wait for
 * it: what happens meanwhile is in the next report.
 */
export class EnvironmentWatch {
  readonly #client: Pick<WorkClient, "reportEnvironmentChanges">;
  readonly #git: GitTools;
  readonly #log: Pick<Log, "warn">;
  /** The pending tasks of each environment, one after the other. */
  readonly #tasks = new Map<string, Tasks>();
  /** The secrets of the work that goes on in each environment. */
  readonly #atWork = new Map<string, Set<Secrets>>();
  /** The secrets of the work that has ended, which may have left them in the files of its environment. */
  readonly #earlier = new Map<string, Secrets>();
  /** Ids of the secrets of all work since this program began, by its environments. */
  readonly #knownIds = new Map<string, Set<string>>();
  /** The refreshes that have not begun, by their environments. */
  readonly #refreshes = new Map<string, Promise<void>>();
  /** False once the server has turned out to be of an earlier release. */
  #isKnown = true;

  constructor(client: Pick<WorkClient, "reportEnvironmentChanges">, git: GitTools, log: Pick<Log, "warn">) {
    this.#client = client;
    this.#git = git;
    this.#log = log;
  }

  /** Records that work goes on in a workspace, whose secrets are masked until it leaves. */
  enter({ environmentId, workspace, secrets, secretIds = [] }: WatchedWorkspace): void {
    mkdirSync(changesFolderOf(workspace), { recursive: true });
    const ids = new Set([...(readSecretIds(workspace) ?? []), ...secretIds]);
    writeFileSync(workFileOf(workspace), [...ids].join("\n"));
    const known = this.#knownIds.get(environmentId) ?? new Set();
    for (const id of secretIds) known.add(id);
    this.#knownIds.set(environmentId, known);
    const atWork = this.#atWork.get(environmentId) ?? new Set();
    this.#atWork.set(environmentId, atWork.add(secrets));
  }

  leave({ environmentId, secrets }: WatchedWorkspace): void {
    const earlier = this.#earlier.get(environmentId) ?? new Secrets();
    earlier.addAll(secrets);
    this.#earlier.set(environmentId, earlier);
    const atWork = this.#atWork.get(environmentId);
    atWork?.delete(secrets);
    if (atWork?.size === 0) this.#atWork.delete(environmentId);
  }

  /** Returns the secrets of all work that goes on in an environment, or has since this program began. */
  secretsOf(environmentId: string): Secrets {
    const all = new Secrets();
    const earlier = this.#earlier.get(environmentId);
    if (earlier) all.addAll(earlier);
    for (const secrets of this.#atWork.get(environmentId) ?? []) all.addAll(secrets);
    return all;
  }

  /**
   * Requires that the secrets are known which work may have left in the files of an environment, before they are shown.
   * @throws WorkFailure secrets_unknown when a program before this one had work there with secrets of which this one has
   *   had none yet
   */
  requireSecrets(watched: Omit<WatchedWorkspace, "secrets">): void {
    if (this.#knowsSecrets(watched)) return;
    throw new WorkFailure(
      "secrets_unknown",
      "its runner was started again, and knows which secrets to mask only once all work goes on that had secrets in the environment",
    );
  }

  #knowsSecrets({ environmentId, workspace }: Omit<WatchedWorkspace, "secrets">): boolean {
    const ids = readSecretIds(workspace);
    const known = this.#knownIds.get(environmentId);
    return ids === undefined || (known !== undefined && ids.every((id) => known.has(id)));
  }

  /** Forgets the secrets of an environment whose workspace is gone. */
  forget(environmentId: string): void {
    this.#earlier.delete(environmentId);
    this.#knownIds.delete(environmentId);
  }

  /**
   * Does something with what the runner keeps of a workspace, between two looks.
   * @throws WorkFailure environment_absent when the workspace goes before
   */
  exclusively<T>(watched: WatchedWorkspace, use: (git: GitTools) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const gone = new WorkFailure("environment_absent", "the environment is being removed");
    void this.#add(watched, () => use(this.#git).then(resolve, reject)).then(() => reject(gone));
    return promise;
  }

  /** Records that a turn of an agent, or a step of an action, begins in a workspace. */
  turnBegins(watched: WatchedWorkspace): void {
    if (!this.#watches(watched)) return;
    const { lastEnd } = this.#tasksOf(watched);
    // It does not wait for the look at the turn before, which must not take its files for those of that turn.
    if (lastEnd) lastEnd.nextBeganMs ??= Date.now();
    void this.#add(watched, () => beginTurn(watched));
  }

  /** Reports what has changed in a workspace, now that a turn or a step has ended. */
  turnEnds(watched: WatchedWorkspace): void {
    if (!this.#watches(watched)) return;
    const tasks = this.#tasks.get(watched.environmentId);
    // A look that has not begun yet sees this turn, too.
    if (tasks?.waitingLook) return;
    const end: EndedTurn = {};
    const task = this.#add(watched, async () => {
      const own = this.#tasksOf(watched);
      own.waitingLook = false;
      const nextBeganMs = () => end.nextBeganMs;
      const report = await reportChanges(this.#git, this.#masked(watched), { isEnd: true, nextBeganMs });
      await this.#send(report, own.abandoned.signal);
    });
    const own = this.#tasksOf(watched);
    own.waitingLook = true;
    own.lastEnd = end;
    void task;
  }

  /**
   * Reports what has changed in a workspace now. Who asks while a look waits for others gets that one.
   *
   * @throws WorkFailure environment_absent; Error when the report was not taken
   */
  refresh(watched: WatchedWorkspace): Promise<void> {
    const known = this.#refreshes.get(watched.environmentId);
    if (known) return known;
    const refreshed = this.exclusively(watched, async (git) => {
      this.#refreshes.delete(watched.environmentId);
      const { abandoned } = this.#tasksOf(watched);
      const report = await reportChanges(git, this.#masked(watched), { isEnd: false });
      await this.#client.reportEnvironmentChanges(report, {
        timeoutMs: CALL_MS,
        signal: abandoned.signal,
      });
    }).finally(() => this.#refreshes.delete(watched.environmentId));
    this.#refreshes.set(watched.environmentId, refreshed);
    return refreshed;
  }

  /** Resolves when everything of an environment so far has been reported, or given up. */
  async settled(environmentId: string): Promise<void> {
    await this.#tasks.get(environmentId)?.last;
  }

  /** Ends the reports of an environment: resolves when nothing of it is looked at any more. */
  async abandon(environmentId: string): Promise<void> {
    const tasks = this.#tasks.get(environmentId);
    tasks?.abandoned.abort();
    await tasks?.last;
  }

  /** Returns a workspace whose reports mask the secrets of other work in it, too: of people who have secrets of their own. */
  #masked(watched: WatchedWorkspace): WatchedWorkspace {
    const secrets = this.secretsOf(watched.environmentId);
    secrets.addAll(watched.secrets);
    return { ...watched, secrets, hidesPatches: !this.#knowsSecrets(watched) };
  }

  #watches({ checkouts }: WatchedWorkspace): boolean {
    return this.#isKnown && checkouts.length > 0;
  }

  #tasksOf({ environmentId }: WatchedWorkspace): Tasks {
    const tasks = this.#tasks.get(environmentId) ?? {
      last: Promise.resolve(),
      waitingLook: false,
      abandoned: new AbortController(),
    };
    this.#tasks.set(environmentId, tasks);
    return tasks;
  }

  /** Does a task after those before it; a failure goes to the log. */
  async #add(watched: WatchedWorkspace, task: () => Promise<void>): Promise<void> {
    const { environmentId } = watched;
    const tasks = this.#tasksOf(watched);
    // A turn that begins separates the looks before it from those after it.
    tasks.waitingLook = false;
    const { signal } = tasks.abandoned;
    const last = tasks.last
      .then(() => (signal.aborted ? undefined : task()))
      .catch((error: Error) => {
        if (signal.aborted) return;
        const problem = this.#masked(watched).secrets.maskText(error.message);
        this.#log.warn({ environment: environmentId, problem }, "changes could not be reported");
      });
    tasks.last = last;
    await last;
    if (tasks.last === last) this.#tasks.delete(environmentId);
  }

  async #send(report: ChangesReport, signal: AbortSignal): Promise<void> {
    const until = performance.now() + REPEAT_MS;
    for (let failures = 1; ; failures++) {
      try {
        await this.#client.reportEnvironmentChanges(report, { timeoutMs: CALL_MS, signal });
        return;
      } catch (error) {
        if (isUnknownOperation(error)) {
          this.#isKnown = false;
          return;
        }
        // The environment is gone, or the token: the work in it finds out.
        if (signal.aborted || classifyFailure(error) !== "transient") return;
        if (performance.now() >= until) throw error;
      }
      await pause(backOffMs(failures), signal);
    }
  }
}

/** Returns the ids of the secrets that work has had in a workspace; undefined where there was no work. */
function readSecretIds(workspace: WatchedWorkspace["workspace"]): readonly string[] | undefined {
  const file = workFileOf(workspace);
  if (!existsSync(file)) return undefined;
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((id) => id !== "");
}

/** Returns the file that says that there was work in a workspace, with the ids of its secrets. */
function workFileOf(workspace: WatchedWorkspace["workspace"]): string {
  return join(changesFolderOf(workspace), "work");
}

/** A turn that has ended, and may not have been looked at. */
interface EndedTurn {
  /** When the turn after it has begun, in milliseconds since 1970; absent while none has. */
  nextBeganMs?: number;
}

interface Tasks {
  last: Promise<void>;
  /** Absent before a turn has ended. */
  lastEnd?: EndedTurn;
  /** True while a look waits that sees all turns so far. */
  waitingLook: boolean;
  /** Aborted when the workspace goes. */
  readonly abandoned: AbortController;
}
