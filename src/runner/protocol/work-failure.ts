/** The failure of a piece of work as it is reported. The message gives advice and contains no secret. */
export class WorkFailure extends Error {
  override readonly name = "WorkFailure";
  /** The cause as a stable identifier such as `remote_refused`, at most 64 characters. */
  readonly reason: string;
  /** True if a retry may succeed without a change by a person. */
  readonly retriable: boolean;

  constructor(reason: string, message: string, retriable = false) {
    super(message);
    this.reason = reason;
    this.retriable = retriable;
  }
}
