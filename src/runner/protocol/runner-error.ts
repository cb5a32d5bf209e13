/**
 * An error that keeps a runner from working and that its operator can fix; the
 * message is for the operator.
 */
export class RunnerError extends Error {
  override readonly name = "RunnerError";
}
