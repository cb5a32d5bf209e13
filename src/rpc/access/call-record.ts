import { type Code, type ContextKey, createContextKey } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";
import type { CallNames } from "../error/error.ts";

/** Counts what was produced of one answer and waits for its client, in bytes. */
export interface OutputAccount {
  /** Charges the answer to a caller; calls of others may go on when this caller's may not. */
  charge(callerKey: string): void;
  /**
   * Lets a call begin, or returns a promise that resolves when answers before it
   * have left. It never rejects; {@link leave} ends the wait.
   *
   * @param read the operation, if it has no side effects: only so many of its calls produce answers of one caller at once
   */
  enter(read: string | undefined): Promise<void> | undefined;
  /** Stops waiting; does nothing for a call that has begun. */
  leave(): void;
  /** Counts bytes that were produced. */
  hold(bytes: number): void;
  /** Counts held bytes that the socket has taken. */
  take(bytes: number): void;
}

/** What the access log says of a call. */
export interface CallRecord extends CallNames {
  /** Full name of the operation; `none` when the path names none. */
  operation: string;
  /** Set when the call failed. */
  code?: Code;
  /** Set when the gate knew the caller. */
  caller?: Caller;
  /** Counts the answer; a call without a socket has none. */
  readonly output?: OutputAccount;
}

/** Where a call's record travels with it. */
export const callRecordKey: ContextKey<CallRecord> = createContextKey<CallRecord>(
  { requestId: "", operation: "" },
  { description: "call record" },
);
