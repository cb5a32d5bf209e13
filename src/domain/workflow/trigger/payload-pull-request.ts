import { create } from "@bufbuild/protobuf";
import {
  PullRequest_Origin as Origin,
  type PullRequest,
  type PullRequest_State,
  PullRequestSchema,
} from "#gen/service/v1/agent_pb.js";
import { type PayloadField, UnsupportedPayload } from "./payload-field.ts";

/** Limits of the contract's PullRequest and PullRequest.Repository. */
const TITLE_MAX_CHARACTERS = 500;
const NAME_MAX_CHARACTERS = 255;
const URL_MAX_CHARACTERS = 2_048;
const HOST_MAX_CHARACTERS = 253;

/**
 * A pull request, and every URL that its host gives for the repository that the changes are meant
 * for.
 */
export interface RepositoryPullRequest {
  readonly pullRequest: PullRequest;
  readonly repositoryUrls: readonly string[];
}

/** The places of a pull request's fields in a host's payload. */
export interface PullRequestFields {
  /** Number in the repository, by which the host's API finds it. */
  readonly id: PayloadField;
  readonly title: PayloadField;
  readonly fromBranch: PayloadField;
  readonly toBranch: PayloadField;
  readonly url: PayloadField;
  /** Undefined when the payload does not name one. */
  readonly author: PayloadField | undefined;
  readonly draft: boolean;
  readonly state: PullRequest_State;
  readonly headSha: PayloadField;
  /** Return the host's numbers of the repositories with the changes, and that they are meant for. */
  readonly headRepositoryId: () => PayloadField;
  readonly baseRepositoryId: () => PayloadField;
  /** Owner and name: `owner/name`, or `group/subgroup/name`. */
  readonly repositoryPath: PayloadField;
  /** http or https. */
  readonly cloneUrl: PayloadField;
  /** In any form; absent ones are left out. */
  readonly otherUrls: readonly PayloadField[];
}

/**
 * Builds a pull request from its fields.
 * @throws UnsupportedPayload when a field is missing, malformed or over a limit of the contract
 */
export function pullRequestFromPayload(fields: PullRequestFields): RepositoryPullRequest {
  const cloneUrl = fields.cloneUrl.webUrl(URL_MAX_CHARACTERS);
  const host = new URL(cloneUrl).hostname;
  if (host.length > HOST_MAX_CHARACTERS) {
    throw new UnsupportedPayload(
      `the host name of the repository has more than ${HOST_MAX_CHARACTERS} characters`,
    );
  }
  const path = fields.repositoryPath.name(2 * NAME_MAX_CHARACTERS + 1);
  const slash = path.lastIndexOf("/");
  const owner = path.slice(0, Math.max(slash, 0));
  const name = path.slice(slash + 1);
  if (
    owner === "" ||
    name === "" ||
    owner.length > NAME_MAX_CHARACTERS ||
    name.length > NAME_MAX_CHARACTERS
  ) {
    throw new UnsupportedPayload(
      `the repository must have an owner and a name of at most ${NAME_MAX_CHARACTERS} characters`,
    );
  }
  const others = fields.otherUrls.flatMap((url) => url.optional()?.name(URL_MAX_CHARACTERS) ?? []);
  return {
    pullRequest: create(PullRequestSchema, {
      id: fields.id.id(),
      title: fields.title.title(TITLE_MAX_CHARACTERS),
      fromBranch: fields.fromBranch.name(NAME_MAX_CHARACTERS),
      toBranch: fields.toBranch.name(NAME_MAX_CHARACTERS),
      url: fields.url.webUrl(URL_MAX_CHARACTERS),
      author: fields.author?.name(NAME_MAX_CHARACTERS) ?? "",
      draft: fields.draft,
      state: fields.state,
      headSha: fields.headSha.commit(),
      origin: originOf(fields),
      repository: { cloneUrl, host, owner, name },
    }),
    repositoryUrls: [...new Set([cloneUrl, ...others])],
  };
}

/** Returns where the changes come from: unknown if the fields are missing or malformed, which rejects no event. */
function originOf({ headRepositoryId, baseRepositoryId }: PullRequestFields): Origin {
  try {
    const [head, base] = [headRepositoryId().id(), baseRepositoryId().id()];
    return head === base ? Origin.SAME_REPOSITORY : Origin.FORK;
  } catch (error) {
    if (error instanceof UnsupportedPayload) return Origin.UNSPECIFIED;
    throw error;
  }
}
