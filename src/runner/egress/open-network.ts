import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { OpenNetwork } from "./egress.ts";

/**
 * Opens the way out of the commands of a piece of work; undefined where they have the network of the machine.
 *
 * @throws WorkFailure policy_unsupported where they have that and the organization says what they may reach
 */
export async function openNetwork(
  { tools, work }: Pick<Assignment, "tools" | "work">,
  { folder }: Pick<Workspace, "folder">,
  environment: Environment | undefined,
): Promise<OpenNetwork | undefined> {
  const policy = work.policies?.egress;
  if (!tools.egress && policy) {
    throw new WorkFailure(
      "policy_unsupported",
      "this runner isolates nothing and cannot keep egress: let a runner with isolation do the work, or change the organization's policies",
    );
  }
  return tools.egress?.open({ folder, initializer: environment?.spec?.content?.initializer, policy });
}
