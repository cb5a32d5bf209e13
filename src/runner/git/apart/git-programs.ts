import { CHANNEL_DESCRIPTOR } from "../../process/command.ts";

/**
 * Passes git's prompts on to the runner, by the descriptor that git was started with, and its answers back. They are in
 * no argument, variable or file, which others could read.
 */
export const ASK_PASS = `#!/bin/sh
printf '%s\\n' "$1" >&${CHANNEL_DESCRIPTOR} || exit 1
IFS= read -r answer <&${CHANNEL_DESCRIPTOR} || exit 1
[ -n "$answer" ] || exit 1
printf '%s\\n' "$answer"
`;

/**
 * Connects to the address that was checked, with the operator's key and no other:
 * otherwise ssh would offer the keys of the runner's user, with that user's
 * settings, to any host that a workflow names. A host's key is remembered at the
 * first connection; a different one is refused afterwards.
 */
export const SSH = `#!/bin/sh
exec ssh -F none -o BatchMode=yes -o ConnectTimeout=30 -o ClearAllForwardings=yes \\
  -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=\\"$CHARTROOM_SSH_KNOWN_HOSTS\\"" \\
  -o "HostName=$CHARTROOM_SSH_ADDRESS" -o "HostKeyAlias=$CHARTROOM_SSH_HOST" \\
  -o IdentityAgent=none -o IdentitiesOnly=yes -o "IdentityFile=\\"$CHARTROOM_SSH_KEY\\"" "$@"
`;

/**
 * Is ssh to a git that runs apart: hands its arguments and its input to the runner, by the descriptor that git was
 * started with, and gives back what comes. The runner starts the real one outside, where the key is.
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

/** Returns the program that starts the relay to ssh with the Node that the runner has. */
export function sshRelayStarter(node: string, relay: string): string {
  const [program, file] = [node, relay].map((each) => `'${each.replaceAll("'", "'\\''")}'`);
  // What it compiles for speed would take more memory than the operator may allow a process.
  return `#!/bin/sh\nexec ${program} --jitless ${file} "$@"\n`;
}
