/** An error that prevents a runner from working and that its operator can fix. The message is for the operator. */
export class RunnerError extends Error {
  override readonly name = "RunnerError";
}
