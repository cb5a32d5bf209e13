/** What keeps a runner from working and its operator can mend; the message is for them. */
export class RunnerProblem extends Error {
  override readonly name = "RunnerProblem";
}
