/** A problem of the surroundings that the person at the terminal can mend. */
export class StartError extends Error {
  override readonly name = "StartError";
}
