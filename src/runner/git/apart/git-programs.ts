import { CHANNEL_DESCRIPTOR } from "../../process/command.ts";

/**
 * Relays git's prompts to the runner and the answers back, through the descriptor that git was started with. Secrets
 * are in no argument, variable or file, which others could read.
 */
export const ASK_PASS = `#!/bin/sh
printf '%s\\n' "$1" >&${CHANNEL_DESCRIPTOR} || exit 1
IFS= read -r answer <&${CHANNEL_DESCRIPTOR} || exit 1
[ -n "$answer" ] || exit 1
printf '%s\\n' "$answer"
`;

/**
 * Connects to the checked address, with the operator's key only. Otherwise ssh would offer the keys of the runner's
 * user, with that user's settings, to any host that a workflow names. Remembers a host's key at the first connection
 * and refuses a different one afterwards.
 */
export const SSH = `#!/bin/sh
exec ssh -F none -o BatchMode=yes -o ConnectTimeout=30 -o ClearAllForwardings=yes \\
  -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=\\"$CHARTROOM_SSH_KNOWN_HOSTS\\"" \\
  -o "HostName=$CHARTROOM_SSH_ADDRESS" -o "HostKeyAlias=$CHARTROOM_SSH_HOST" \\
  -o IdentityAgent=none -o IdentitiesOnly=yes -o "IdentityFile=\\"$CHARTROOM_SSH_KEY\\"" "$@"
`;

/**
 * Acts as ssh for a git that runs apart: sends its arguments and input to the runner through the descriptor that git
 * was started with, and returns the output. The runner starts the real ssh outside the sandbox, where the key is.
 */
export const SSH_RELAY = `import { Socket } from "node:net";
const { argv, exit, stdin, stdout } = globalThis.process;
const channel = new Socket({ fd: ${CHANNEL_DESCRIPTOR}, readable: true, writable: true, allowHalfOpen: true });
channel.on("error", () => exit(1));
stdout.on("error", () => exit(1));
channel.write(JSON.stringify(argv.slice(2)) + "\\n");
stdin.pipe(channel);
channel.pipe(stdout);
// Git need not have closed its end.
channel.once("end", () => stdin.destroy());
`;

/** Returns the program that starts the ssh relay with the runner's Node. */
export function sshRelayStarter(node: string, relay: string): string {
  const [program, file] = [node, relay].map((each) => `'${each.replaceAll("'", "'\\''")}'`);
  // The JIT compiler could need more memory than the operator allows a process.
  return `#!/bin/sh\nexec ${program} --jitless ${file} "$@"\n`;
}
