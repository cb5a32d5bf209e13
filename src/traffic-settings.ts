import { OUTPUT_SETTINGS } from "./output-settings.ts";
import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** How much of requests and answers the server holds at the same time. */
export const TRAFFIC_SETTINGS = {
  ...OUTPUT_SETTINGS,
  callerBodyBytes: setting({
    flag: "--caller-body-bytes",
    argument: "MiB",
    env: "CHARTROOM_CALLER_BODY_BYTES",
    default: "64",
    help: "request bodies of one caller that are held at the same time; the largest single one takes 54",
    read: integer(64, 4_096),
  }),
  bodyBytes: setting({
    flag: "--body-bytes",
    argument: "MiB",
    env: "CHARTROOM_BODY_BYTES",
    default: "256",
    help: "request bodies of all callers that are held at the same time; past it they are told to come again",
    read: integer(64, 65_536),
  }),
} as const;
