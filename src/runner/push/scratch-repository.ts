import { constants, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type GitCall, type GitRepository, git, gitFailureOf, tryGit } from "../git/git-run.ts";
import type { RepositorySnapshot } from "../git/git-snapshot.ts";
import type { GitTools } from "../git/git-tools.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** A bare repository with the runner's own settings, refs and objects. */
export interface ScratchRepository {
  readonly call: GitCall & { readonly repository: GitRepository };
  /**
   * Copies a commit of the tree with the history since the commit that was checked out.
   * @param onProgress receives git's progress lines
   */
  copy(commit: string, onProgress?: (line: string) => void): Promise<void>;
}

/** The branches of a scratch repository. */
const BASE = "refs/heads/base";
const OWN = "refs/heads/own";

/** Harmless faults that occur in the history of real projects. Commits with other faults are refused. */
const HARMLESS_FAULTS = [
  "badDate",
  "badEmail",
  "badTimezone",
  "missingEmail",
  "missingNameBeforeEmail",
  "missingSpaceBeforeDate",
  "missingSpaceBeforeEmail",
  "zeroPaddedDate",
  "zeroPaddedFilemode",
];

const FETCH = ["fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--update-shallow"];

/**
 * Runs `use` with a new repository to push from, and removes it afterwards. A git without a credential copies the
 * objects of the tree and recomputes their hashes, so that the git with the credential reads no files that commands
 * wrote.
 *
 * @param from.base the commit that was checked out; undefined for none
 * @param from.onProgress receives git's progress lines while `base` is copied
 */
export async function withScratchRepository<T>(
  tools: GitTools,
  { repository, borrowed }: Pick<RepositorySnapshot, "repository" | "borrowed">,
  {
    base,
    signal,
    onProgress,
  }: {
    readonly base: string | undefined;
    readonly signal: AbortSignal | undefined;
    readonly onProgress: ((line: string) => void) | undefined;
  },
  use: (scratch: ScratchRepository) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tools.scratch, "push-"));
  try {
    const source = { repository: { gitFolder: join(folder, "source") }, signal };
    const own = { repository: { gitFolder: join(folder, "own") }, signal };
    for (const { repository } of [source, own]) {
      await mkdir(repository.gitFolder);
      await git(tools, ["init", "--quiet", "--bare", "--template="], { repository, signal });
    }
    const folders = [
      borrowed,
      ...[repository, own.repository].map((each) => join(each.gitFolder, "objects")),
    ];
    await mkdir(join(source.repository.gitFolder, "objects/info"), { recursive: true });
    await writeFile(join(source.repository.gitFolder, "objects/info/alternates"), `${folders.join("\n")}\n`);
    await copyIfThere(join(repository.gitFolder, "shallow"), join(source.repository.gitFolder, "shallow"));
    const fetch = async (
      settings: readonly string[],
      args: readonly string[],
      onProgress?: (line: string) => void,
    ) => {
      const line = [...settings.flatMap((setting) => ["-c", setting]), ...FETCH, ...args];
      const call = { ...own, environment: { GIT_ALLOW_PROTOCOL: "file" }, onProgress };
      const result = await tryGit(tools, line, call);
      if (result.exit !== 0) throw unsound(gitFailureOf(["fetch"], result, call));
    };
    const address = source.repository.gitFolder;
    if (base !== undefined && (await hasRef(tools, source, BASE, base))) {
      // The remote has this commit, so its history need not be copied.
      await fetch([], ["--depth=1", "--", address, `+${BASE}:${BASE}`], onProgress);
    }
    return await use({
      call: own,
      async copy(commit, onProgress) {
        await git(tools, ["update-ref", OWN, commit], source);
        const faults = HARMLESS_FAULTS.map((fault) => `fetch.fsck.${fault}=ignore`);
        const args = ["--", address, `+${OWN}:${OWN}`];
        await fetch(["fetch.fsckObjects=true", ...faults], args, onProgress);
      },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function hasRef(tools: GitTools, call: GitCall, ref: string, commit: string): Promise<boolean> {
  return (await tryGit(tools, ["update-ref", ref, commit], call)).exit === 0;
}

function unsound({ message }: WorkFailure): WorkFailure {
  return new WorkFailure(
    "repository_unsound",
    `what is to be pushed is not complete, or git holds it for harmful: ${message}`,
  );
}

async function copyIfThere(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
