import { type Code, type ContextKey, createContextKey } from "@connectrpc/connect";
import type { Caller } from "../domain/caller.ts";
import type { CallNames } from "./error.ts";

/** Counts what was produced of one answer and waits for its client, in bytes. */
export interface OutputAccount {
  /**
   * Takes a place for a call, or waits until the answers before it have left:
   * undefined when there is one at once. The promise never rejects; it resolves
   * also when the client goes away.
   *
   * @param callerKey who pays for the answer
   * @param read the operation, if it has no side effects: only so many of its calls produce answers of one caller at once
   */
  enter(callerKey: string, read: string | undefined): Promise<void> | undefined;
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
