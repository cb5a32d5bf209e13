export { Code, ConnectError } from "@connectrpc/connect";
export { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
export type { RuleViolation } from "../../api/src/rules.ts";
export { type ChartroomClient, type ClientOptions, createClient, type ServerVersion } from "./client.ts";
export { type Failure, failureOf, reasonOf } from "./failure.ts";
export type { ElementOf } from "./pages.ts";
export type { WatchOptions } from "./watch.ts";
