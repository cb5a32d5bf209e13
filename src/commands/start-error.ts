/** Exit codes of commands, for scripts; docs/command-line.md lists them. */
export const ExitCode = {
  /** The command is wrong or was refused. */
  refused: 1,
  /** The agent run failed. */
  runFailed: 2,
  /** The server differs from the files that describe it. */
  drift: 2,
  /** A copy of the data was made but failed its check. */
  copyFailed: 2,
  /** The server is unreachable or busy: the same command may succeed later. */
  unavailable: 3,
  /** There is no valid token. */
  unauthenticated: 4,
  /** The reader closed the output: a shell's exit code for a program that SIGPIPE ends. */
  outputClosed: 141,
  /** A signal ended the command. */
  interrupted: { SIGINT: 130, SIGTERM: 143 },
} as const;
export type ExitCode = Extract<(typeof ExitCode)[keyof typeof ExitCode], number>;

/** A problem of the environment that the person at the terminal can fix. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly exitCode: ExitCode;

  constructor(
    message: string,
    { exitCode = ExitCode.refused, ...options }: ErrorOptions & { readonly exitCode?: ExitCode } = {},
  ) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
