import { type Code, type ContextKey, createContextKey } from "@connectrpc/connect";
import type { Caller } from "../domain/caller.ts";
import type { CallNames } from "./error.ts";

/** What the access log says of a call. */
export interface CallRecord extends CallNames {
  /** Full name of the operation; `none` when the path names none. */
  operation: string;
  /** Set when the call failed. */
  code?: Code;
  /** Set when the gate knew the caller. */
  caller?: Caller;
}

/** Where a call's record travels with it. */
export const callRecordKey: ContextKey<CallRecord> = createContextKey<CallRecord>(
  { requestId: "", operation: "" },
  { description: "call record" },
);
