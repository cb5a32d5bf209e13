import {
  type CreateTerminalRequest,
  RequestError,
  type TerminalExitStatus,
  type TerminalOutputResponse,
} from "@agentclientprotocol/sdk";
import type { Secrets } from "../../../domain/secrets.ts";
import type { CommandResult, RunCommand } from "../../process/command.ts";
import type { OutputStream } from "../../process/command-output.ts";

/** Maximum bytes of output that are kept of a terminal; the default when the agent sets no lower limit. */
const MAX_OUTPUT_BYTES = 1_048_576;
/** Maximum number of terminals that an agent may have at once. */
const MAX_TERMINALS = 32;

/** The end of an output. */
interface OutputTail {
  output: Buffer;
  truncated: boolean;
}

interface Terminal extends OutputTail {
  /** The command as people see it: masked before it is cut, since the rest of a secret is not recognized. */
  readonly shown: OutputTail;
  exit: TerminalExitStatus | undefined;
  readonly ended: Promise<TerminalExitStatus>;
  readonly end: AbortController;
}

/** The surroundings of commands in terminals. */
export interface TerminalOptions {
  /** Runs them, kept in as the agent is. */
  readonly runCommand: RunCommand;
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: Pick<Secrets, "stream">;
}

/** Serves an agent's requests for commands that run in its workspace. */
export class Terminals {
  readonly #options: TerminalOptions;
  readonly #terminals = new Map<string, Terminal>();
  /** Those of released ids whose commands have not ended yet. */
  readonly #released = new Set<Terminal>();
  #made = 0;

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  /**
   * Starts a command and returns the id of its terminal.
   * @param folder the real path of its folder
   * @throws RequestError
   */
  create({ command, args = [], env = [], outputByteLimit }: CreateTerminalRequest, folder: string): string {
    const { runCommand, environment, secrets } = this.#options;
    if (this.#terminals.size + this.#released.size >= MAX_TERMINALS)
      throw RequestError.invalidRequest(undefined, `${MAX_TERMINALS} terminals are the most: release one`);
    const maxBytes = Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
    // A whole line for a shell comes without arguments.
    const isLine = args.length === 0 && /\s/.test(command.trim());
    const [program, words] = isLine ? ["sh", ["-c", command]] : [command, args];
    const end = new AbortController();
    const ended = Promise.withResolvers<TerminalExitStatus>();
    const terminal: Terminal = {
      output: Buffer.alloc(0),
      truncated: false,
      shown: { output: Buffer.alloc(0), truncated: false },
      exit: undefined,
      ended: ended.promise,
      end,
    };
    const masks = { stdout: secrets.stream(), stderr: secrets.stream() };
    const keep = (bytes: Buffer, stream: OutputStream) => {
      appendTail(terminal, bytes, maxBytes);
      appendTail(terminal.shown, masks[stream].write(bytes), maxBytes);
    };
    const settle = (exit: TerminalExitStatus) => {
      for (const mask of Object.values(masks)) appendTail(terminal.shown, mask.end(), maxBytes);
      terminal.exit = exit;
      ended.resolve(exit);
    };
    runCommand({
      program,
      args: words,
      folder,
      environment: { ...environment, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
      signal: end.signal,
      onOutput: keep,
    }).then(
      (result) => settle(exitStatusOf(result)),
      (error) => {
        keep(Buffer.from((error as Error).message), "stderr");
        settle({ exitCode: 127, signal: null });
      },
    );
    this.#made++;
    const id = `terminal-${this.#made}`;
    this.#terminals.set(id, terminal);
    return id;
  }

  /** @throws RequestError for an unknown one, as every method with an id does */
  output(id: string): TerminalOutputResponse {
    const { output, truncated, exit } = this.#find(id);
    return { output: output.toString(), truncated, ...(exit && { exitStatus: exit }) };
  }

  waitForExit(id: string): Promise<TerminalExitStatus> {
    return this.#find(id).ended;
  }

  kill(id: string): void {
    this.#find(id).end.abort();
  }

  release(id: string): void {
    const terminal = this.#find(id);
    terminal.end.abort();
    this.#terminals.delete(id);
    this.#released.add(terminal);
    terminal.ended.finally(() => this.#released.delete(terminal));
  }

  /** Returns the output of a terminal as people see it; undefined for an unknown one. */
  outputOf(id: string): string | undefined {
    return this.#terminals.get(id)?.shown.output.toString();
  }

  /** Ends all commands; resolves when they are gone. */
  async end(): Promise<void> {
    const terminals = [...this.#terminals.values(), ...this.#released];
    for (const { end } of terminals) end.abort();
    await Promise.all(terminals.map(({ ended }) => ended));
  }

  #find(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (!terminal) throw RequestError.resourceNotFound(id);
    return terminal;
  }
}

/** Adds output, of which the end is kept, cut at a character. */
function appendTail(tail: OutputTail, bytes: Buffer, maxBytes: number): void {
  const all = Buffer.concat([tail.output, bytes]);
  if (all.length <= maxBytes) {
    tail.output = all;
    return;
  }
  let from = all.length - maxBytes;
  while (from < all.length && ((all[from] ?? 0) & 0xc0) === 0x80) from++;
  tail.output = all.subarray(from);
  tail.truncated = true;
}

function exitStatusOf({ exit, signal }: CommandResult): TerminalExitStatus {
  return { exitCode: exit, signal: signal ?? (exit === null ? "SIGTERM" : null) };
}
