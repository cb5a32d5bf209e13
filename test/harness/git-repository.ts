import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The text of each file by its path; null removes the file. */
export type Files = Readonly<Record<string, string | null>>;

export interface CommitOptions {
  /** "main" by default. A missing branch is created from `from`, or without a parent. */
  readonly branch?: string;
  /** A branch or commit that a new branch starts from. */
  readonly from?: string;
  readonly message?: string;
}

/** A bare repository of a real git, for tests to clone from and push to. */
export interface BareRepository {
  readonly folder: string;
  /** file:///... */
  readonly url: string;
  /** Adds a commit on top of a branch and returns its hash. */
  commit(files: Files, options?: CommitOptions): string;
  /** Points any ref, such as refs/tags/v1 or refs/pull/7/head, at a commit. */
  setRef(ref: string, commit: string): void;
  /** Returns the commit of a ref, or undefined when the ref does not exist. */
  find(ref: string): string | undefined;
  /** Returns the text of a file at a branch or commit. */
  read(at: string, path: string): string;
  /** Returns the paths of all files at a branch or commit. */
  list(at: string): string[];
  /** Returns the full messages of a branch's commits, newest first. */
  messages(at: string): string[];
  /** Runs git in the repository. */
  git(...args: string[]): string;
}

const IDENTITY = {
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
};

/** Runs the real git in a folder, without the user's own settings. */
export function runGit(
  folder: string,
  args: readonly string[],
  more: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): string {
  return execFileSync("git", [...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      ...IDENTITY,
      ...more.env,
    },
    input: more.input ?? "",
    stdio: ["pipe", "pipe", "pipe"],
    encoding: "utf8",
  }).trimEnd();
}

interface NewCommit {
  readonly branch: string;
  readonly parent: string | undefined;
  readonly message: string;
  readonly changes: Files;
}

/** Adds a commit by one process, and returns its hash; to make each of its objects by itself takes ten. */
function importCommit(folder: string, { branch, parent, message, changes }: NewCommit): string {
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const quoted = (path: string) => JSON.stringify(path);
  const stream = [
    `commit refs/heads/${branch}\nmark :1\ncommitter Ada <ada@example.org> now\n${data(`${message}\n`)}`,
    ...(parent === undefined ? [] : [`from ${parent}\n`]),
    ...Object.entries(changes).map(([path, text]) =>
      text === null ? `D ${quoted(path)}\n` : `M 100644 inline ${quoted(path)}\n${data(text)}`,
    ),
    "get-mark :1\n",
  ];
  return runGit(folder, ["fast-import", "--quiet", "--date-format=now"], { input: stream.join("") });
}

/**
 * Creates a bare repository in a new folder inside `parent`, whose default branch is main.
 *
 * @param files of its first commit; without them it has none
 * @param name of its folder
 */
export function bareRepository(parent: string, files?: Files, name = "repository.git"): BareRepository {
  const folder = join(mkdtempSync(join(parent, "bare-")), name);
  runGit(parent, ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", folder]);
  const git = (...args: string[]) => runGit(folder, args);
  const find = (ref: string) => {
    try {
      return git("rev-parse", "--verify", "--quiet", ref);
    } catch {
      return undefined;
    }
  };
  const repository: BareRepository = {
    folder,
    url: pathToFileURL(folder).href,
    git,
    find,
    commit(changes, { branch = "main", from, message = "change" } = {}) {
      const parentCommit = find(`refs/heads/${branch}`) ?? (from === undefined ? undefined : find(from));
      return importCommit(folder, { branch, parent: parentCommit, message, changes });
    },
    setRef: (ref, commit) => void git("update-ref", ref, commit),
    read: (at, path) => git("cat-file", "blob", `${at}:${path}`),
    list: (at) => git("ls-tree", "-r", "--name-only", at).split("\n"),
    messages: (at) =>
      git("log", "--format=%B%x00", at)
        .split("\0")
        .slice(0, -1)
        .map((text) => text.trim()),
  };
  if (files) repository.commit(files, { message: "first" });
  return repository;
}
