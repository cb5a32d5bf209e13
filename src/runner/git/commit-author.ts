import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { CommitAuthor } from "./git-commit.ts";

/** Returns the author of an environment's commits: the environment's own if it sets one, otherwise the service. */
export function resolveCommitAuthor(environment: Environment | undefined, serverUrl: string): CommitAuthor {
  const { gitUsername = "", gitEmail = "" } = environment?.spec?.content ?? {};
  const host = URL.parse(serverUrl)?.hostname ?? "localhost";
  return { name: gitUsername.trim() || "Chartroom", email: gitEmail.trim() || `noreply@${host}` };
}
