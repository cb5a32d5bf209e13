import { WorkFailure } from "../../protocol/work-failure.ts";
import type { ImageRequest } from "../isolation.ts";
import { isImageName } from "./container-arguments.ts";
import { type BuildOptions, buildDevcontainer } from "./devcontainer-build.ts";
import { readDevcontainer } from "./devcontainer-file.ts";
import { chosenImageIn, type ImageChoice, keepChosenImage } from "./image-choice.ts";

/** What the operator lets repositories choose about their images. */
export interface RepositoryImages {
  /** The images that they may name: full names, or prefixes followed by `*`. */
  readonly allowed: readonly string[];
  /** The program of @devcontainers/cli that builds their images; empty for no builds. */
  readonly cli: string;
  /** Maximum number of built images to keep. */
  readonly most: number;
}

/**
 * Returns the function that chooses the image of an environment: its repository's if it names or defines one,
 * otherwise its organization's; empty for the operator's. Reads a repository before any work runs in it. When two
 * pieces of work start in one environment at the same time, the second waits for the first choice.
 */
export function imageChooser(
  images: RepositoryImages,
  options: Omit<BuildOptions, "cli">,
): (request: ImageRequest) => Promise<string> {
  const choosing = new Map<string, Promise<string>>();
  return async (request) => {
    const { folder } = request.workspace;
    for (let other = choosing.get(folder); other; other = choosing.get(folder))
      await untilSettled(other, request.signal);
    const choice = chooseImage(images, options, request).finally(() => choosing.delete(folder));
    choosing.set(folder, choice);
    return choice;
  };
}

/**
 * Waits for another choice, which may build for half an hour.
 *
 * @throws the reason of the signal when it is aborted first
 */
async function untilSettled(other: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  const onAbort = () => resolve();
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) resolve();
  await Promise.race([other.catch(() => undefined), stopped]);
  signal.removeEventListener("abort", onAbort);
  signal.throwIfAborted();
}

/**
 * @throws WorkFailure image_refused, policy_unsupported, devcontainer_invalid, devcontainer_cli_missing,
 *   image_build_failed
 * @throws the reason of the signal when it was aborted
 */
async function chooseImage(
  images: RepositoryImages,
  options: Omit<BuildOptions, "cli">,
  request: ImageRequest,
): Promise<string> {
  const { organizationImage, workspace } = request;
  if (images.allowed.length === 0 && images.cli === "") return organizationImage;
  const kept = await chosenImageIn(workspace.folder);
  if (kept !== undefined) {
    requireAllowed(images, kept, request);
    if (kept.isBuilt) await options.built?.holding(kept.image, workspace.folder, async () => undefined);
    return kept.image || organizationImage;
  }
  const choice = await choose(images, options, request);
  return choice.image || organizationImage;
}

/** Chooses an image and stores the choice in the workspace. */
async function choose(
  images: RepositoryImages,
  options: Omit<BuildOptions, "cli">,
  request: ImageRequest,
): Promise<ImageChoice> {
  const { repository, devcontainerFile, workspace, signal } = request;
  const keep = async (choice: ImageChoice) => {
    await keepChosenImage(workspace.folder, choice);
    return choice;
  };
  const found = await readDevcontainer(repository, devcontainerFile);
  if (found.kind === "none") return keep({ image: "", isBuilt: false });
  if (found.kind === "image") {
    const choice = { image: found.image, isBuilt: false };
    requireAllowed(images, choice, request);
    return keep(choice);
  }
  requireAllowed(images, { image: "", isBuilt: true }, request);
  if (typeof found.config.image === "string") requireName(found.config.image);
  const place = { repository, folder: workspace.folder, signal };
  return buildDevcontainer({ ...options, cli: images.cli }, found, place, (image) =>
    keep({ image, isBuilt: true }),
  );
}

/** @throws WorkFailure image_refused, devcontainer_cli_missing, policy_unsupported */
function requireAllowed(
  { allowed, cli }: RepositoryImages,
  { image, isBuilt }: ImageChoice,
  { isNarrowed }: ImageRequest,
): void {
  if (isBuilt && cli === "") throw new WorkFailure("devcontainer_cli_missing", NO_CLI);
  if (isBuilt && isNarrowed) throw new WorkFailure("policy_unsupported", NARROWED);
  if (isBuilt || image === "") return;
  requireName(image);
  // A build may start from any image. If nothing may be built, only images on the list may be fetched.
  if ((cli !== "" && !isNarrowed) || allowed.some((pattern) => isMatch(pattern, image))) return;
  throw new WorkFailure(
    "image_refused",
    `the repository asks for the image ${JSON.stringify(image)}, which this runner does not allow: its operator can, by --isolation-repository-images`,
  );
}

/** @throws WorkFailure devcontainer_invalid for an engine option or a file of the machine */
function requireName(image: string): void {
  if (isImageName(image)) return;
  throw new WorkFailure(
    "devcontainer_invalid",
    `the devcontainer file names no image with ${JSON.stringify(image)}`,
  );
}

function isMatch(pattern: string, image: string): boolean {
  return pattern.endsWith("*") ? image.startsWith(pattern.slice(0, -1)) : image === pattern;
}

const NO_CLI =
  "the image of the devcontainer file has to be built, and this runner builds none: its operator can name @devcontainers/cli, by --isolation-devcontainer-cli";
const NARROWED =
  "the image of the devcontainer file has to be built, which would reach the network past the proxy: the organization's policy egress, or the fork that the work is of, does not allow that; let the file name an image";
