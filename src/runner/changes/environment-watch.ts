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

/** Time during which a report is retried while the server is unreachable. */
const REPEAT_MS = 15_000;

/**
 * Reports the changes in the workspaces of environments. A scan takes time, and agents and steps do not wait for it:
 * changes that happen during a scan are in the next report.
 */
export class EnvironmentWatch {
  readonly #client: Pick<WorkClient, "reportEnvironmentChanges">;
  readonly #git: GitTools;
  readonly #log: Pick<Log, "warn">;
  /** The pending tasks of each environment, which run one at a time. */
  readonly #tasks = new Map<string, Tasks>();
  /** The secrets of the work in progress in each environment. */
  readonly #atWork = new Map<string, Set<Secrets>>();
  /** The secrets of finished work, which may have written them to files of its environment. */
  readonly #earlier = new Map<string, Secrets>();
  /** Ids of the secrets of all work since this program started, by environment. */
  readonly #knownIds = new Map<string, Set<string>>();
  /** The refreshes that have not begun, by environment. */
  readonly #refreshes = new Map<string, Promise<void>>();
  /** False once the server has rejected the operation as unknown, since it is of an earlier release. */
  #isKnown = true;

  constructor(client: Pick<WorkClient, "reportEnvironmentChanges">, git: GitTools, log: Pick<Log, "warn">) {
    this.#client = client;
    this.#git = git;
    this.#log = log;
  }

  /** Records that work begins in a workspace. Reports mask its secrets from now on. */
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

  /** Returns the secrets of all current work in an environment, and of all past work since this program started. */
  secretsOf(environmentId: string): Secrets {
    const all = new Secrets();
    const earlier = this.#earlier.get(environmentId);
    if (earlier) all.addAll(earlier);
    for (const secrets of this.#atWork.get(environmentId) ?? []) all.addAll(secrets);
    return all;
  }

  /**
   * Requires that all secrets are known that work may have written to the files of an environment. Call it before files
   * are shown.
   * @throws WorkFailure secrets_unknown when an earlier process had work there with secrets that this process has not
   *   received yet
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
   * Runs `use` between two scans of a workspace, so that it alone uses the runner's index and objects.
   * @throws WorkFailure environment_absent when the workspace is removed first
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
    // The turn does not wait for the scan of the previous turn, which must not count this turn's files as its own.
    if (lastEnd) lastEnd.nextBeganMs ??= Date.now();
    void this.#add(watched, () => beginTurn(watched));
  }

  /** Reports the changes in a workspace after the end of a turn or step. */
  turnEnds(watched: WatchedWorkspace): void {
    if (!this.#watches(watched)) return;
    const tasks = this.#tasks.get(watched.environmentId);
    // A scan that has not begun yet also covers this turn.
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
   * Reports the current changes in a workspace. Callers share a refresh that has not begun yet.
   *
   * @throws WorkFailure environment_absent
   * @throws Error when the server does not accept the report
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

  /** Resolves when all pending reports of an environment are sent or given up. */
  async settled(environmentId: string): Promise<void> {
    await this.#tasks.get(environmentId)?.last;
  }

  /** Cancels the reports of an environment; resolves when no scan of it is running. */
  async abandon(environmentId: string): Promise<void> {
    const tasks = this.#tasks.get(environmentId);
    tasks?.abandoned.abort();
    await tasks?.last;
  }

  /** Returns a workspace whose reports also mask the secrets of other work in it, which may belong to other people. */
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

  /** Runs a task after all earlier ones; logs a failure. */
  async #add(watched: WatchedWorkspace, task: () => Promise<void>): Promise<void> {
    const { environmentId } = watched;
    const tasks = this.#tasksOf(watched);
    // The beginning of a turn separates earlier scans from later ones.
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
        // The environment is gone or the token is no longer valid. The work itself finds out.
        if (signal.aborted || classifyFailure(error) !== "transient") return;
        if (performance.now() >= until) throw error;
      }
      await pause(backOffMs(failures), signal);
    }
  }
}

/** Returns the ids of the secrets that work had in a workspace; undefined if there was no work. */
function readSecretIds(workspace: WatchedWorkspace["workspace"]): readonly string[] | undefined {
  const file = workFileOf(workspace);
  if (!existsSync(file)) return undefined;
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((id) => id !== "");
}

/** Returns the path of the file with the secret ids of a workspace's work. It exists once there was work. */
function workFileOf(workspace: WatchedWorkspace["workspace"]): string {
  return join(changesFolderOf(workspace), "work");
}

/** A turn that has ended. Its scan may still be pending. */
interface EndedTurn {
  /** When the next turn began, in milliseconds since 1970; absent before that. */
  nextBeganMs?: number;
}

interface Tasks {
  last: Promise<void>;
  /** Absent until a turn has ended. */
  lastEnd?: EndedTurn;
  /** True while a scan is queued that covers all turns so far. */
  waitingLook: boolean;
  /** Aborted when the workspace is removed. */
  readonly abandoned: AbortController;
}
