import { join } from "node:path";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { isWithheld } from "../../domain/policy/work-secrets.ts";
import type { Checkout } from "../git/git-checkout.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Workspace } from "./workspace.ts";

/**
 * Returns the image of an environment where its class of isolation has images; empty for that of the runner's operator.
 *
 * @param checkouts what was checked out in it
 * @throws WorkFailure
 * @throws the reason of the signal when that ended it
 */
export async function imageOfEnvironment(
  { tools, work }: Pick<Assignment, "tools" | "work">,
  environment: Environment | undefined,
  { workspace, checkouts }: { readonly workspace: Workspace; readonly checkouts: readonly Checkout[] },
  signal: AbortSignal,
): Promise<string> {
  const organizationImage = work.policies?.defaultEnvironmentImage ?? "";
  const { imageOf } = tools.isolation;
  const [first] = checkouts;
  if (!imageOf || !first) return organizationImage;
  return imageOf({
    workspace,
    repository: join(workspace.tree, first.location),
    devcontainerFile: environment?.spec?.devcontainer?.devcontainerFilePath ?? "",
    organizationImage,
    isNarrowed: work.policies?.egress !== undefined || (environment !== undefined && isWithheld(environment)),
    signal,
  });
}
