import { join } from "node:path";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { isWithheld } from "../../domain/policy/work-secrets.ts";
import type { Checkout } from "../git/git-checkout.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Workspace } from "./workspace.ts";

/**
 * Returns the image of an environment if the runner's isolation uses images; empty for the image of the runner's operator.
 *
 * @param checkouts the checkouts in the environment
 * @throws WorkFailure
 * @throws the reason of the signal when the signal ended it
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
