import { OUTPUT_SETTINGS } from "./output-settings.ts";
import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/**
 * The minimum budget of bodies, in MiB: the largest request takes 59 (ten images
 * to an agent), and while it is unpacked at most as much again.
 */
const LEAST_BODY_BYTES = 128;

/** The limits on requests and responses that the server holds at the same time. */
export const TRAFFIC_SETTINGS = {
  ...OUTPUT_SETTINGS,
  callerBodyBytes: setting({
    flag: "--caller-body-bytes",
    argument: "MiB",
    env: "CHARTROOM_CALLER_BODY_BYTES",
    default: "128",
    help: "request bodies of one caller that are held at the same time; the largest takes 59, packed up to twice that",
    read: integer(LEAST_BODY_BYTES, 4_096),
  }),
  bodyBytes: setting({
    flag: "--body-bytes",
    argument: "MiB",
    env: "CHARTROOM_BODY_BYTES",
    default: "256",
    help: "request bodies of all callers that are held at the same time; past it they are told to come again; deliveries to webhooks have 64 of their own",
    read: integer(LEAST_BODY_BYTES, 65_536),
  }),
} as const;
