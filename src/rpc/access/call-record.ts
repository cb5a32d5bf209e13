import { type Code, type ConnectError, type ContextKey, createContextKey } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";
import type { CallNames } from "../error/error.ts";

/** Counts the bytes of one response that were produced and wait for its client. */
export interface OutputAccount {
  /** Charges the response to a caller; a caller over its limit does not block the calls of others. */
  charge(callerKey: string): void;
  /**
   * Lets a call begin, or returns a promise that resolves when earlier responses
   * were sent. It never rejects; {@link leave} ends the wait.
   *
   * @param read the operation, if it has no side effects: only so many of its
   *   calls of one caller produce responses at once
   * @param shortBytes of a read, what it holds at most before it asks for
   *   {@link enlarge}; undefined for one that does not ask
   */
  enter(read: string | undefined, shortBytes?: number): Promise<void> | undefined;
  /**
   * Lets a read hold a full page, or returns a promise that resolves when it may.
   * It never rejects; {@link leave} ends the wait.
   */
  enlarge(): Promise<void> | undefined;
  /** Stops waiting; does nothing for a call that has begun. */
  leave(): void;
  /** Counts bytes that were produced. */
  hold(bytes: number): void;
  /** Counts held bytes that the socket has accepted. */
  take(bytes: number): void;
}

/** The fields of a call for the access log. */
export interface CallRecord extends CallNames {
  /** The full name of the operation; `none` when the path names none. */
  operation: string;
  /** Set when the call failed. */
  code?: Code;
  /** Set when the caller was authenticated. */
  caller?: Caller;
  /** Why nothing of the request is looked at; absent where it is. */
  readonly refusal?: ConnectError;
  /** The address of the client, or of the last proxy that is trusted to name it; absent without a socket. */
  readonly client?: string;
  /** True where a status of 4xx refuses nobody: such is the answer to a device that waits. */
  isNoRefusal?: boolean;
  /** Counts the response; a call without a socket has none. */
  readonly output?: OutputAccount;
}

/** The context key of a call's record. */
export const callRecordKey: ContextKey<CallRecord> = createContextKey<CallRecord>(
  { requestId: "", operation: "" },
  { description: "call record" },
);
