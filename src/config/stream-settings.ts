import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

const streamCount = integer(1, 1_000_000);

/** The limits on streams of service.v1 that are open at the same time, counted by each server process. */
export const STREAM_SETTINGS = {
  streamsPerToken: setting({
    flag: "--streams-per-token",
    argument: "number",
    env: "CHARTROOM_STREAMS_PER_TOKEN",
    default: "64",
    help: "streams that one token may have open at the same time",
    read: streamCount,
  }),
  streamsPerOrganization: setting({
    flag: "--streams-per-organization",
    argument: "number",
    env: "CHARTROOM_STREAMS_PER_ORGANIZATION",
    default: "1024",
    help: "streams that one organization may have open at the same time",
    read: streamCount,
  }),
  streams: setting({
    flag: "--streams",
    argument: "number",
    env: "CHARTROOM_STREAMS",
    default: "8192",
    help: "streams that the server keeps open at the same time; those of runners are not counted",
    read: streamCount,
  }),
} as const;
