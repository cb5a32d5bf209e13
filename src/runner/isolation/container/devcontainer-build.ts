import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { cp, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { resolveInside } from "../../git/tree-path.ts";
import type { Programs } from "../../process/command.ts";
import { Mutex } from "../../process/mutex.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";
import { BUILT_IMAGES, type BuiltImages } from "./built-images.ts";
import type { Engine } from "./container-arguments.ts";
import type { DevcontainerImage } from "./devcontainer-file.ts";
import { runEngine } from "./engine.ts";

const MAX_BUILD_MS = 30 * 60_000;
/** The image with a build's features. The CLI uses the same name for every build. */
const FEATURES_IMAGE = "dev_container_feature_content_temp";
/**
 * Serializes builds with features. Otherwise a build could get the features of a concurrent one, which run as root in
 * it.
 */
const featureBuilds = new Mutex();

export interface BuildOptions {
  readonly engine: Engine;
  /** The program of @devcontainers/cli: a path, or a name on the engine's PATH. */
  readonly cli: string;
  readonly programs: Programs;
  /** Limits the number of built images; unlimited when absent. */
  readonly built?: BuiltImages | undefined;
}

export interface BuildPlace {
  /** The folder of the repository. */
  readonly repository: string;
  /** The runner's folder for a copy of the repository during the build. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Builds the image of a devcontainer file, unless the engine already has one built from the same files.
 *
 * @param keep stores the choice of the image by name; the image is not removed before that
 * @throws WorkFailure devcontainer_cli_missing, image_build_failed
 * @throws the reason of the signal when it was aborted
 */
export async function buildDevcontainer<T>(
  options: BuildOptions,
  { path, config, context }: DevcontainerImage & { readonly kind: "build" },
  { repository, folder, signal }: BuildPlace,
  keep: (image: string) => Promise<T>,
): Promise<T> {
  const scratch = await mkdtemp(join(folder, "build-"));
  try {
    const copy = join(scratch, "repository");
    const { dockerfile } = (config.build ?? {}) as { readonly dockerfile?: string };
    const files = dockerfile === undefined ? [] : [join(dirname(path), dockerfile)];
    for (const each of new Set([context, dirname(path), ...files])) await copyPart(repository, each, copy);
    await writeFile(join(copy, path), JSON.stringify(config));
    const image = `${BUILT_IMAGES}:${await digestOf(copy, path)}`;
    const { engine, built } = options;
    const isThere = async () =>
      (await runEngine(engine, ["image", "inspect", "--format={{.Id}}", image])).isDone;
    const build = () => runCli(options, { scratch, copy, file: join(copy, path), image }, signal);
    const choose = async () => {
      if (await isThere()) return keep(image);
      if (config.features === undefined) await build();
      else {
        await featureBuilds.run(async () => {
          if (await isThere()) return;
          await build().finally(() => runEngine(engine, ["image", "rm", FEATURES_IMAGE]));
        }, signal);
      }
      const kept = await keep(image);
      // The work has its image; the next build retries the removal.
      await built?.removeExcess().catch(() => undefined);
      return kept;
    };
    return await (built ? built.holding(image, folder, choose) : choose());
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

interface BuildFiles {
  readonly scratch: string;
  /** The copy of the repository, and the devcontainer file in it. */
  readonly copy: string;
  readonly file: string;
  /** The name for the image. */
  readonly image: string;
}

/**
 * @throws WorkFailure devcontainer_cli_missing, image_build_failed
 * @throws the reason of the signal when it was aborted
 */
async function runCli(
  { engine, cli, programs }: BuildOptions,
  { scratch, copy, file, image }: BuildFiles,
  signal: AbortSignal,
): Promise<void> {
  const args = [
    ...["build", `--workspace-folder=${copy}`, `--config=${file}`, `--image-name=${image}`],
    ...[`--docker-path=${engine.file}`, `--user-data-folder=${join(scratch, "data")}`],
    // Otherwise a feature's registry could make the CLI send the runner's credentials to another registry.
    "--oci-auth-hardening",
    ...(engine.name === "podman" ? ["--buildkit=never"] : []),
  ];
  await mkdir(join(scratch, "tmp"));
  let messages = "";
  const result = await programs
    .run({
      program: cli,
      args,
      // Not the copy: a relative program path, or one on PATH, would find programs of the repository.
      folder: scratch,
      environment: { ...engine.environment, TMPDIR: join(scratch, "tmp") },
      timeoutMs: MAX_BUILD_MS,
      onOutput: (bytes, stream) => {
        if (stream === "stderr") messages = (messages + bytes).slice(-8_000);
      },
      signal,
    })
    .catch((error) => {
      throw new WorkFailure("devcontainer_cli_missing", `${CLI_MISSING}: ${(error as Error).message}`);
    });
  signal.throwIfAborted();
  if (result.exit === 0) return;
  const why = result.timedOut ? `it took longer than ${MAX_BUILD_MS / 60_000} minutes` : lastOf(messages);
  throw new WorkFailure(
    "image_build_failed",
    `the image of the devcontainer file could not be built: ${why}`,
  );
}

const CLI_MISSING =
  "the image of the devcontainer file is built by @devcontainers/cli, which this runner does not find where --isolation-devcontainer-cli says";

/**
 * Copies a part of a repository without its links. The engine's program runs as the runner, and links could lead it
 * to other files of the machine.
 */
async function copyPart(repository: string, part: string, copy: string): Promise<void> {
  try {
    await cp(resolveInside(repository, part), join(copy, part), {
      recursive: true,
      filter: isOwn,
      mode: constants.COPYFILE_FICLONE,
    });
  } catch (error) {
    if (error instanceof WorkFailure) throw error;
    const problem = (error as NodeJS.ErrnoException).code === "ENOENT" ? "is not there" : "cannot be copied";
    throw new WorkFailure(
      "devcontainer_invalid",
      `the devcontainer file names ${JSON.stringify(part)}, which ${problem}`,
    );
  }
}

async function isOwn(path: string): Promise<boolean> {
  const found = await lstat(path);
  return (found.isFile() || found.isDirectory()) && basename(path).toLowerCase() !== ".git";
}

/**
 * Returns the digest of all files in a folder, with their names and whether they are executable.
 *
 * @param path of the devcontainer file: a repository may have several
 */
async function digestOf(folder: string, path: string): Promise<string> {
  const hash = createHash("sha256").update(`${path}\0`);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  for (const file of files.toSorted()) {
    const { mode, size } = await lstat(file);
    hash.update(`${file.slice(folder.length)}\0${mode & 0o111}\0${size}\0`);
    await pipeline(createReadStream(file), async (chunks) => {
      for await (const chunk of chunks) hash.update(chunk);
    });
  }
  return hash.digest("hex");
}

/** Lines of the CLI's output that do not explain a failure: stack traces, and the engine's whole command line. */
const UNINFORMATIVE = /^\s*at |^Error: Command failed|^Exit code|subprocess exited/;

/** Returns the end of a build's output, as a message for people. */
function lastOf(messages: string): string {
  const lines = messages.split("\n").map((line) => line.replace(/^\[[^\]]*\] */, "").trimEnd());
  const informative = lines.filter((line) => line !== "" && !UNINFORMATIVE.test(line));
  return informative.slice(-3).join(" ").slice(-500) || "it said nothing";
}
