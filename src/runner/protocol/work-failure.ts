/**
 * The failure of a piece of work, in the form in which it is reported: the
 * message holds no secret and gives advice.
 */
export class WorkFailure extends Error {
  override readonly name = "WorkFailure";
  /** The cause as a stable identifier such as `remote_refused`, at most 64 characters. */
  readonly reason: string;
  /** True if the same work may succeed later without a change by a person. */
  readonly retriable: boolean;

  constructor(reason: string, message: string, retriable = false) {
    super(message);
    this.reason = reason;
    this.retriable = retriable;
  }
}
