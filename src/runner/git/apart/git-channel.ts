import { once } from "node:events";
import type { Duplex } from "node:stream";
import { commandEnvironment } from "../../process/command.ts";
import type { RemoteAccess } from "../git-access.ts";
import type { GitTools } from "../git-tools.ts";

/** Maximum length of a line read from programs that git starts. */
const MAX_LINE_BYTES = 16_384;

/** Answers git's prompts on its channel, with an empty line when there is no answer. */
export function replyToPrompts(stream: Duplex, answer: NonNullable<RemoteAccess["answer"]>): void {
  let text = "";
  stream.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      stream.write(`${answer(text.slice(0, end)) ?? ""}\n`);
      text = text.slice(end + 1);
    }
    if (text.length > MAX_LINE_BYTES) stream.destroy();
  });
}

/** An ssh connection for a git that runs apart. */
export interface SshConnection {
  readonly tools: GitTools;
  readonly access: RemoteAccess;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Receives ssh's standard error. */
  readonly onComplaint: (bytes: Buffer) => void;
}

/**
 * Starts ssh outside the sandbox for a git that runs apart, and relays data both ways. Git gets no key and no agent;
 * it may only request a connection to the remote's repository.
 */
export async function connectSsh(stream: Duplex, connection: SshConnection): Promise<void> {
  const { tools, access, timeoutMs, signal, onComplaint } = connection;
  // Git closes its side before it has read everything.
  stream.allowHalfOpen = true;
  const closed = new AbortController();
  stream.once("close", () => closed.abort());
  try {
    const line = await readLine(stream);
    const args = line === undefined ? undefined : checkedSshArguments(line, access.remote);
    if (!args) {
      if (line !== undefined)
        onComplaint(Buffer.from("fatal: git asked for another connection than its remote\n"));
      return;
    }
    await tools.programs.run({
      program: tools.ssh,
      args,
      folder: tools.home,
      environment: commandEnvironment(tools.programs, tools.home, {
        LC_ALL: "C",
        GIT_PROTOCOL: "version=2",
        ...access.environment,
      }),
      input: (stdin) => void stream.pipe(stdin),
      timeoutMs,
      signal: signal ? AbortSignal.any([signal, closed.signal]) : closed.signal,
      async onOutput(bytes, name) {
        if (name === "stderr") onComplaint(bytes);
        else if (!closed.signal.aborted && !stream.write(bytes)) {
          await once(stream, "drain", { signal: closed.signal }).catch(() => undefined);
        }
      },
    });
  } finally {
    stream.end();
  }
}

/** Reads the first line of a stream and leaves the rest unread; undefined when there is none. */
async function readLine(stream: Duplex): Promise<string | undefined> {
  let read = Buffer.alloc(0);
  while (read.length <= MAX_LINE_BYTES) {
    const part: Buffer | null = stream.read();
    if (part) {
      read = Buffer.concat([read, part]);
      const end = read.indexOf("\n");
      if (end < 0) continue;
      stream.unshift(read.subarray(end + 1));
      return read.subarray(0, end).toString();
    }
    if (stream.readableEnded || stream.destroyed) return undefined;
    const gone = ["end", "close"].map((event) => once(stream, event));
    await Promise.race([once(stream, "readable"), ...gone]);
  }
  return undefined;
}

const PROTOCOL_ARGUMENTS = ["-o", "SendEnv=GIT_PROTOCOL"];

/** Returns the ssh arguments that git requests; undefined when they are not for the remote. */
export function checkedSshArguments(line: string, remote: RemoteAccess["remote"]): string[] | undefined {
  const named = parsedArguments(line);
  const [command = "", destination = "", ...options] = named.toReversed();
  const user = remote.user === "" ? "" : `${remote.user}@`;
  const expected = [...(remote.port === 22 ? [[]] : []), ["-p", String(remote.port)]].flatMap((port) => [
    port,
    [...PROTOCOL_ARGUMENTS, ...port],
  ]);
  const before = JSON.stringify(options.toReversed());
  const isExpected =
    expected.some((each) => JSON.stringify(each) === before) &&
    destination.slice(0, user.length) === user &&
    destination.slice(user.length).toLowerCase() === remote.hostname &&
    ["upload", "receive"].some((each) => command === `git-${each}-pack ${quoted(pathOf(remote.address))}`);
  return isExpected ? named : undefined;
}

function parsedArguments(line: string): string[] {
  try {
    const value: unknown = JSON.parse(line);
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
  } catch {
    return [];
  }
}

/** Returns a repository's path in the form that git sends to ssh. */
function pathOf(address: string): string {
  if (!address.includes("://")) return address.replace(/^([^:[]*|[^[]*\[[^\]]*\]):/, "");
  const path = decoded(address.replace(/^[^:]+:\/\/[^/]*/, ""));
  return path.startsWith("/~") ? path.slice(1) : path;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Quotes a text for a shell like git does. */
function quoted(text: string): string {
  return `'${text.replace(/['!]/g, (each) => `'\\${each}'`)}'`;
}
