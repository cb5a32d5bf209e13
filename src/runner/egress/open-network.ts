import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Assignment } from "../protocol/assignment.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { OpenNetwork } from "./egress.ts";

/** Opens the way out of the commands of a piece of work; undefined where they have the network of the machine. */
export async function openNetwork(
  { tools }: Assignment,
  { folder }: Workspace,
  environment: Environment | undefined,
): Promise<OpenNetwork | undefined> {
  return tools.egress?.open({ folder, initializer: environment?.spec?.content?.initializer });
}
