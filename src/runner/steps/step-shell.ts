import { howItEnded } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepRun } from "./action-step.ts";

/** The service stores 1 MiB of a step's log: a command that prints this much more is out of control. */
export const MAX_OUTPUT_BYTES = 16 * 1_024 * 1_024;

/** Runs its argument by sh. Without the dashes, a command that begins with one would be read as options. */
const SEPARATE_OUTPUTS = 'exec sh -c -- "$1"';
/** Joins both outputs, so that the log has them in their order. */
const JOINED_OUTPUTS = `${SEPARATE_OUTPUTS} 2>&1`;

export interface ShellCommand {
  /** A noun phrase that can begin a sentence. */
  readonly name: string;
  readonly command: string;
  /** The number of bytes of standard output that are returned; none when absent. */
  readonly keepBytes?: number;
}

/**
 * Runs a command by sh in the step's folder, and sends its output to the step's
 * log, without secrets.
 *
 * @returns its standard output, up to `keepBytes`, unmasked
 * @throws WorkFailure command_failed, output_limit_exceeded, command_not_started
 * @throws the reason of the step's signal when that ended it
 */
export async function runShell(
  { assignment: { tools, secrets }, folder, environment, log, signal }: StepRun,
  { name, command, keepBytes = 0 }: ShellCommand,
): Promise<Buffer> {
  const masks = { stdout: secrets.stream(), stderr: secrets.stream() };
  let printedBytes = 0;
  const result = await tools.programs.run({
    program: "sh",
    args: ["-c", keepBytes > 0 ? SEPARATE_OUTPUTS : JOINED_OUTPUTS, "sh", command],
    folder,
    environment,
    keepBytes,
    signal,
    async onOutput(bytes, stream) {
      printedBytes += bytes.length;
      if (printedBytes > MAX_OUTPUT_BYTES) {
        throw new WorkFailure(
          "output_limit_exceeded",
          `${name} printed more than ${MAX_OUTPUT_BYTES} bytes, and was ended: send the rest to a file`,
        );
      }
      await log.write(masks[stream].write(bytes));
    },
  });
  for (const mask of Object.values(masks)) await log.write(mask.end());
  if (result.stopped) signal.throwIfAborted();
  if (result.exit !== 0) throw new WorkFailure("command_failed", `${name} ${howItEnded(result)}`);
  return result.stdout;
}
