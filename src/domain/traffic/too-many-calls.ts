import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../error.ts";

/** Whose calls are limited. */
export type CallScope = "token" | "account" | "organization" | "address";
export const CALL_SCOPES: readonly CallScope[] = ["token", "account", "organization", "address"];

const WHAT: Readonly<Record<CallScope, string>> = {
  token: "the token has made too many calls",
  account: "the account has made too many calls, with all of its tokens",
  organization: "the server has more calls than it answers, and the organization has had its share of them",
  address: "too many requests from this address were refused without a known caller",
};

/** Returns the error for a call past the limit of its token, account, organization or address. */
export function tooManyCalls(scope: CallScope, retryAfterSeconds: number): DomainError {
  const again = `try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? "second" : "seconds"}`;
  return new DomainError(ErrorReason.TOO_MANY_CALLS, `${WHAT[scope]}: ${again}`, {
    scope,
    retry_after_seconds: String(retryAfterSeconds),
  });
}
