import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { posix } from "node:path";
import { isJsonObject } from "../../../domain/json-object.ts";
import { resolveInside } from "../../git/tree-path.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";

/** The image of a repository as its devcontainer file describes it. */
export type DevcontainerImage =
  | { readonly kind: "none" }
  | { readonly kind: "image"; readonly image: string }
  | {
      readonly kind: "build";
      /** The file's path in the repository. */
      readonly path: string;
      /** The members of the file that define the image, without those that make the engine do more. */
      readonly config: Readonly<Record<string, unknown>>;
      /** The build context, relative to the repository's root. */
      readonly context: string;
    };

const USUAL_PLACES = [".devcontainer/devcontainer.json", ".devcontainer.json"];
const MAX_BYTES = 256 * 1_024;

/**
 * Reads the image that a repository's devcontainer file describes.
 *
 * @param repository its folder
 * @param named the path of the devcontainer file; empty for the usual places
 * @throws WorkFailure devcontainer_invalid, path_refused
 */
export async function readDevcontainer(repository: string, named: string): Promise<DevcontainerImage> {
  const path = named || USUAL_PLACES.find((each) => existsSync(resolveInside(repository, each)));
  if (path === undefined) return { kind: "none" };
  const file = resolveInside(repository, path);
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw invalid(path, "is no file");
  if (found.size > MAX_BYTES) throw invalid(path, `is larger than ${MAX_BYTES / 1_024} KiB`);
  return imageIn(await readFile(file, "utf8"), posix.normalize(path));
}

/**
 * Parses the text of a devcontainer file.
 *
 * @throws WorkFailure devcontainer_invalid
 */
function imageIn(text: string, path: string): DevcontainerImage {
  const { dockerComposeFile, image, features, build, dockerFile, context } = objectIn(text, path);
  if (dockerComposeFile !== undefined)
    throw invalid(path, "names dockerComposeFile: work runs in one container, not in several");
  const hasFeatures = Object.keys(asObject(features, path, "features")).length > 0;
  const parts = asObject(build, path, "build");
  const dockerfile = asText(parts.dockerfile ?? dockerFile, path, "build.dockerfile");
  if (dockerfile === undefined) {
    if (build !== undefined) throw invalid(path, "has a build without dockerfile");
    const name = asText(image, path, "image");
    if (name === undefined) {
      if (hasFeatures) throw invalid(path, "has features and no image that they are added to");
      return { kind: "none" };
    }
    if (!hasFeatures) return { kind: "image", image: name };
    requireOwnFeatures(features, path);
    return { kind: "build", path, config: { image: name, features }, context: folderOf(path) };
  }
  if (Array.isArray(parts.options) && parts.options.length > 0)
    throw invalid(path, "has build.options, which are the engine's");
  requireOwnFeatures(features, path);
  const { args } = parts;
  const target = asText(parts.target, path, "build.target");
  const given = asText(parts.context ?? context, path, "build.context") ?? ".";
  // Both paths are relative to the file's folder.
  requireInside(path, dockerfile, "build.dockerfile");
  const config = {
    build: {
      dockerfile,
      context: given,
      ...(args !== undefined && { args }),
      ...(target !== undefined && { target }),
    },
    ...(hasFeatures && { features }),
  };
  return { kind: "build", path, config, context: requireInside(path, given, "build.context") };
}

/**
 * Strings, which stay, and comments, in JSON with comments. An unterminated one extends to the end of its line or the
 * text, and stays; otherwise the search would restart at each of its characters.
 */
const STRING_OR_COMMENT = /"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g;
/** Strings, which stay, and trailing commas. */
const STRING_OR_LAST_COMMA = /"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])/g;

function objectIn(text: string, path: string): Readonly<Record<string, unknown>> {
  const keepStrings = (found: string) => {
    const isOpen = found.startsWith("/*") && !found.endsWith("*/");
    return found.startsWith('"') || isOpen ? found : " ";
  };
  const bare = text
    .replace(/^\uFEFF/, "")
    .replace(STRING_OR_COMMENT, keepStrings)
    .replace(STRING_OR_LAST_COMMA, keepStrings);
  let value: unknown;
  try {
    value = JSON.parse(bare);
  } catch {
    // The parser's message would quote the file.
    throw invalid(path, "is no JSON");
  }
  if (value === undefined) throw invalid(path, "is no JSON object");
  return asObject(value, path, "the file");
}

function asObject(value: unknown, path: string, name: string): Readonly<Record<string, unknown>> {
  if (value === undefined) return {};
  if (!isJsonObject(value)) throw invalid(path, `has something else than an object in ${name}`);
  return value;
}

function asText(value: unknown, path: string, name: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value === "")
    throw invalid(path, `has something else than text in ${name}`);
  return value;
}

function folderOf(path: string): string {
  return posix.dirname(path);
}

/**
 * Requires that a path relative to the file's folder stays in the repository, and returns it relative to the
 * repository's root. Refuses variables: the CLI would replace them with the runner's variables, or with a default
 * value, and the path could lead anywhere.
 */
function requireInside(path: string, relative: string, name: string): string {
  if (relative.includes("${")) throw invalid(path, `has a variable in ${name}`);
  const found = posix.normalize(posix.join(folderOf(path), relative));
  if (posix.isAbsolute(relative) || found === ".." || found.startsWith("../"))
    throw invalid(path, `leaves the repository by ${name}`);
  return found;
}

/** Requires that features come from registries or from the file's own folder. */
function requireOwnFeatures(features: unknown, path: string): void {
  for (const name of Object.keys(asObject(features, path, "features"))) {
    if (name.startsWith("/") || name.split("/").includes(".."))
      throw invalid(path, "leaves its folder by a feature");
  }
}

function invalid(path: string, problem: string): WorkFailure {
  return new WorkFailure("devcontainer_invalid", `the devcontainer file ${JSON.stringify(path)} ${problem}`);
}
