import {
  type EnvironmentInitializer,
  type GitInitializer,
  GitInitializer_CloneTargetMode as Mode,
} from "#gen/service/v1/environment_pb.js";
import { sourceOfPage, type Target } from "../../domain/source/context-url.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** One source of an environment. */
export interface Source {
  readonly remoteUri: string;
  /** The upstream's address; empty for none. */
  readonly upstreamUri: string;
  readonly target: Target;
  /** The folder in the tree as requested; empty to use the repository's name. */
  readonly location: string;
  /** The number of commits of history; 0 for all. */
  readonly depth: number;
}

/**
 * Returns the sources of an initializer in order; none for a blank environment.
 *
 * @throws WorkFailure initializer_unknown for a kind that this runner does not know
 */
export function sourcesOf(initializer: EnvironmentInitializer | undefined): readonly Source[] {
  return (initializer?.specs ?? []).map(({ spec }) => {
    switch (spec.case) {
      case "git":
        return sourceOfGit(spec.value);
      case "contextUrl":
        return { ...sourceOfPage(spec.value.url), upstreamUri: "", location: "", depth: 0 };
      default:
        throw new WorkFailure(
          "initializer_unknown",
          "the initializer names a source that this runner does not know",
        );
    }
  });
}

function sourceOfGit({
  remoteUri,
  upstreamRemoteUri,
  checkoutLocation,
  depth = 0,
  ...initializer
}: GitInitializer): Source {
  return {
    remoteUri,
    upstreamUri: upstreamRemoteUri,
    target: targetOf(initializer),
    location: checkoutLocation,
    depth,
  };
}

function targetOf({ targetMode, cloneTarget }: Pick<GitInitializer, "targetMode" | "cloneTarget">): Target {
  switch (targetMode) {
    case Mode.UNSPECIFIED:
    case Mode.REMOTE_HEAD:
      return { kind: "head" };
    case Mode.REMOTE_COMMIT:
      return { kind: "commit", hash: cloneTarget };
    case Mode.REMOTE_BRANCH:
      return { kind: "branch", name: cloneTarget };
    case Mode.LOCAL_BRANCH:
      return { kind: "local-branch", name: cloneTarget };
    case Mode.REMOTE_TAG:
      return { kind: "tag", name: cloneTarget };
    default:
      throw new WorkFailure(
        "initializer_unknown",
        "the initializer names a target that this runner does not know",
      );
  }
}
