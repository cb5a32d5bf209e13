import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { CommitAuthor } from "./git-commit.ts";

/** Who is said to make the commits of an environment: whom it names, or else the service itself. */
export function authorOf(environment: Environment | undefined, serverUrl: string): CommitAuthor {
  const { gitUsername = "", gitEmail = "" } = environment?.spec?.content ?? {};
  const host = URL.parse(serverUrl)?.hostname ?? "localhost";
  return { name: gitUsername.trim() || "Chartroom", email: gitEmail.trim() || `noreply@${host}` };
}
