/** A problem of the environment that the person at the terminal can fix. */
export class StartError extends Error {
  override readonly name = "StartError";
}
