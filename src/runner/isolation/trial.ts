import { mkdir } from "node:fs/promises";
import { Egress } from "../egress/egress.ts";
import { PROXY_PORT } from "../egress/work-network.ts";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { workspaceAt } from "../steps/workspace.ts";
import type { Isolation } from "./isolation.ts";

/** Fails when a guarantee of the sandbox does not hold. */
const TRIAL = `
set -e
has() { grep -q "^$1:[[:space:]]*$2\\$" /proc/self/status; }
has NoNewPrivs 1 || { echo "new privileges are possible" >&2; exit 1; }
has Seccomp 2 || { echo "system calls are not filtered" >&2; exit 1; }
has CapEff 0000000000000000 || { echo "it has capabilities" >&2; exit 1; }
[ "$(id -u)" != 0 ] || [ -n "$ROOT_IS_USER" ] || { echo "it is root" >&2; exit 1; }
[ "$(grep -c : /proc/net/dev)" = 1 ] || { echo "it has the network of the machine" >&2; exit 1; }
grep -q "$LISTENING" /proc/net/tcp || { echo "it does not reach a proxy" >&2; exit 1; }
touch file "$HOME/file" /tmp/file
! touch /usr/file /file 2>&1
`;

/** The forwarder's port on 127.0.0.1, in the format of /proc/net/tcp. */
const LISTENING = `0100007F:${PROXY_PORT.toString(16).toUpperCase().padStart(4, "0")}`;
const NOWHERE = { named: { registries: [], models: [] }, privateNetworks: [] };

/**
 * Runs a command in an isolation class, like work does, that checks the isolation.
 *
 * @param variables ROOT_IS_USER when the class's root is an ordinary user of the machine
 * @returns the guarantee that does not hold, as a message for people; undefined when all hold
 */
export async function tryWork(
  folder: string,
  isolation: Isolation,
  programs: Programs,
  variables: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const workspace = workspaceAt(folder, "00000000-0000-4000-8000-000000000000");
  for (const each of [workspace.tree, workspace.home]) await mkdir(each, { recursive: true });
  const network = await new Egress({ serverUrl: "", ...NOWHERE, machine: { programs, env: {} } }).open({
    folder: workspace.folder,
    initializer: undefined,
    policy: { sets: [] },
  });
  const run = await isolation.enter(workspace, [], { network });
  let text = "";
  const { exit } = await run({
    program: "sh",
    args: ["-c", TRIAL],
    folder: workspace.tree,
    environment: commandEnvironment(programs, workspace.home, { ...variables, LISTENING }),
    timeoutMs: 60_000,
    onOutput: (bytes) => {
      if (text.length < 1_000) text += bytes.toString();
    },
  })
    .catch((error) => {
      throw new Error(firstLineOf(text) || (error as Error).message);
    })
    .finally(() => network.close());
  return exit === 0 ? undefined : firstLineOf(text) || `a trial ended with ${exit}`;
}

function firstLineOf(text: string): string {
  return (text.trim().split("\n")[0] ?? "").replace(/\.$/, "");
}
