import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type {
  EnvironmentQuestion_ReadRemote as ReadRemote,
  AnswerRequestRequest_RemoteReadSchema as RemoteReadSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { type PullRequest, PullRequestSchema, PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { Secrets } from "../../domain/secrets.ts";
import { repositoryPath } from "../../domain/source/repository-path.ts";
import { ScmFailure } from "../../scm/failure.ts";
import { type GitCredential, type RemoteAccess, resolveRemoteAccess } from "../git/git-access.ts";
import { findRemoteRefs, type NamedRefs, refNameOf } from "../git/remote-refs.ts";
import { logFailure } from "../protocol/failure-report.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { AnswerTools } from "./environment-answers.ts";
import { credentialOfQuestion } from "./question-credential.ts";

/** A question about a remote. */
interface RemoteQuestion {
  /** Id of the question; the server returns the credential for it. */
  readonly id: string;
  readonly read: ReadRemote;
  readonly signal: AbortSignal;
}

type RemoteRead = MessageInitShape<typeof RemoteReadSchema>;

/** Maximum number of parts of a path that are tried as a branch name. The rest of the path may name folders. */
const MAX_NAME_PARTS = 32;

/** Timeout for reading a pull request from its host. A slower host leaves the answer without the pull request. */
const HOST_MS = 10_000;

const STATES = { open: State.OPEN, closed: State.CLOSED, merged: State.MERGED } as const;

/** Reads a revision of a remote. Returns a failure as the answer. */
export async function respondToRead(
  tools: Pick<AnswerTools, "git" | "scm" | "client" | "log">,
  { id, read, signal }: RemoteQuestion,
): Promise<RemoteRead> {
  const secrets = new Secrets();
  try {
    const find = credentialOfQuestion(tools.client, id, secrets, signal);
    let credential: GitCredential | undefined;
    const access = await resolveRemoteAccess(tools.git, read.remote, async (host) => {
      const found = await find(host);
      if (found && "token" in found) credential = found;
      return found;
    });
    const names = namesOf(read);
    const { reached, remote } = await findRemoteRefs(tools.git, access, names, signal);
    const revision = revisionOf(read, names, remote);
    const pullRequest = credential && (await readPullRequest(tools.scm, reached, credential, read, signal));
    return { remote: reached.remote.address, ...revision, ...(pullRequest && { pullRequest }) };
  } catch (error) {
    signal.throwIfAborted();
    return { failure: logFailure(tools.log, { question: id }, error, secrets) };
  }
}

/** Returns the refs to request. The first one that the remote has is used. */
function namesOf({ revision, tagsOnly }: ReadRemote): readonly string[] {
  switch (revision.case) {
    case "tag":
      return [refNameOf("tags", revision.value)];
    case "ref":
      return [revision.value];
    case "path": {
      const parts = revision.value.split("/").slice(0, MAX_NAME_PARTS);
      const names = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
      const kinds = tagsOnly ? (["tags"] as const) : (["heads", "tags"] as const);
      return names.flatMap((name) => kinds.map((kind) => refNameOf(kind, name)));
    }
    default:
      return [];
  }
}

function revisionOf(
  { revision, tagsOnly }: ReadRemote,
  names: readonly string[],
  { commits, headCommit: commit = "", defaultBranch: branch = "" }: NamedRefs,
): Pick<RemoteRead, "branch" | "tag" | "commit"> {
  if (revision.case === undefined) return { commit, branch };
  const name = names.find((each) => commits.has(each));
  if (name !== undefined) {
    const [, kind, short = ""] = /^refs\/(heads|tags)\/(.+)$/s.exec(name) ?? [];
    const text = Buffer.from(short, "latin1").toString();
    return {
      commit: commits.get(name) ?? "",
      ...(kind === "heads" && { branch: text }),
      ...(kind === "tags" && { tag: text }),
    };
  }
  const [first = ""] = revision.value.split("/");
  const mayBeOther = revision.case === "path" && !tagsOnly;
  if (mayBeOther && first === "HEAD") return { commit, branch };
  // Remotes do not list the commits that they have.
  if (mayBeOther && /^[0-9a-f]{7,64}$/i.test(first)) return { commit: first.toLowerCase() };
  throw new WorkFailure(
    "revision_not_found",
    `the remote has no such branch, tag, commit or pull request: ${JSON.stringify(revision.value)}`,
  );
}

/** Reads a pull request from its host; returns undefined if the host does not return it. */
async function readPullRequest(
  scm: AnswerTools["scm"],
  { remote: { address, host } }: RemoteAccess,
  { token }: GitCredential,
  { pullRequest: number }: ReadRemote,
  signal: AbortSignal,
): Promise<PullRequest | undefined> {
  const repository = repositoryPath(address);
  if (number === 0 || repository === undefined) return undefined;
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(HOST_MS)]);
  try {
    const request = { host, token, repository, number, memory: {}, signal: bounded };
    const { pullRequest } = await scm.readPullRequest(request);
    const { state, title, draft, branch: fromBranch, base: toBranch } = pullRequest;
    return create(PullRequestSchema, { title, draft, fromBranch, toBranch, state: STATES[state] });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ScmFailure || bounded.aborted) return undefined;
    throw error;
  }
}
