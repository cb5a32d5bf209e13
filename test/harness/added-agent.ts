import { addAgent } from "../../src/commands/agent.ts";
import type { FormName } from "../../src/commands/definitions/declare-agent.ts";
import { dataConfigOf } from "./data-config.ts";
import type { ReachableServer } from "./server.ts";

/**
 * Registers an agent of all organizations while a server runs, as the command `agent add --default` does, without
 * the process of a command.
 *
 * @param command its program and arguments
 */
export async function addDefaultAgent(
  { dataDir }: Pick<ReachableServer, "dataDir">,
  name: string,
  form: FormName,
  command: readonly string[],
): Promise<void> {
  await addAgent(dataConfigOf(dataDir), {
    name,
    form,
    command: JSON.stringify(command),
    description: "",
    takesSettings: false,
    isDefault: true,
    mcpServers: [],
    organization: undefined,
  });
}
