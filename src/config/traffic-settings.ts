import { integer, networks, oneOf } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The limits on output that waits for slow readers. */
const OUTPUT_SETTINGS = {
  outputPerConnection: setting({
    flag: "--output-per-connection",
    argument: "MiB",
    env: "CHARTROOM_OUTPUT_PER_CONNECTION",
    default: "64",
    help: "responses buffered for one connection; beyond it, further calls on the connection wait",
    read: integer(1, 4_096),
  }),
  outputPerCaller: setting({
    flag: "--output-per-caller",
    argument: "MiB",
    env: "CHARTROOM_OUTPUT_PER_CALLER",
    default: "128",
    help: "responses buffered for one account, on all of its connections",
    read: integer(1, 4_096),
  }),
  outputTotal: setting({
    flag: "--output-total",
    argument: "MiB",
    env: "CHARTROOM_OUTPUT_TOTAL",
    default: "512",
    help: "responses buffered in total; beyond it, the slowest connection is closed",
    read: integer(1, 65_536),
  }),
  slowReaderTimeout: setting({
    flag: "--slow-reader-timeout",
    argument: "seconds",
    env: "CHARTROOM_SLOW_READER_TIMEOUT",
    default: "30",
    help: "how long a response waits for a client that reads nothing before it is aborted",
    read: integer(1, 3_600),
  }),
} as const;

/**
 * The minimum budget of request bodies, in MiB. The largest request, ten images to
 * an agent, takes 59, and at most as much again while it is unpacked.
 */
const MIN_BODY_MIB = 128;

const streamCount = integer(1, 1_000_000);

/** The limits on streams of service.v1 that are open at the same time, counted by each server process. */
const STREAM_SETTINGS = {
  streamsPerToken: setting({
    flag: "--streams-per-token",
    argument: "number",
    env: "CHARTROOM_STREAMS_PER_TOKEN",
    default: "64",
    help: "maximum number of open streams of one token",
    read: streamCount,
  }),
  streamsPerOrganization: setting({
    flag: "--streams-per-organization",
    argument: "number",
    env: "CHARTROOM_STREAMS_PER_ORGANIZATION",
    default: "1024",
    help: "maximum number of open streams of one organization",
    read: streamCount,
  }),
  streams: setting({
    flag: "--streams",
    argument: "number",
    env: "CHARTROOM_STREAMS",
    default: "8192",
    help: "maximum number of open streams of the server, not counting those of runners",
    read: streamCount,
  }),
} as const;

const most = 1_000_000_000;

/** Limits of the calls of a token, an account, an address and an organization; see docs/rate-limits.md. */
const RATE_SETTINGS = {
  rateLimits: setting({
    flag: "--rate-limits",
    argument: "on|off",
    env: "CHARTROOM_RATE_LIMITS",
    default: "on",
    help: "enforce the rate limits of tokens, accounts, organizations and addresses; off enforces none",
    read: oneOf<"on" | "off">(["on", "off"]),
  }),
  callsPerToken: setting({
    flag: "--calls-per-token",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_TOKEN",
    default: "120000",
    help: "calls per minute of one token; a twentieth of them can be a burst",
    read: integer(1, most),
  }),
  callsPerAccount: setting({
    flag: "--calls-per-account",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_ACCOUNT",
    default: "240000",
    help: "calls per minute of one account with all of its tokens; a twentieth of them can be a burst",
    read: integer(1, most),
  }),
  callsPerServer: setting({
    flag: "--calls-per-server",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_SERVER",
    default: "600000",
    help: "calls per minute beyond which this server shares its capacity fairly among organizations; 0 for no limit",
    read: integer(0, most),
  }),
  refusalsPerAddress: setting({
    flag: "--refusals-per-address",
    argument: "number",
    env: "CHARTROOM_REFUSALS_PER_ADDRESS",
    default: "60000",
    help: "requests per minute from one address that may be rejected without a known caller, a twentieth of them as a burst; beyond it, its requests are rejected unread",
    read: integer(1, most),
  }),
  connectionsPerAddress: setting({
    flag: "--connections-per-address",
    argument: "number",
    env: "CHARTROOM_CONNECTIONS_PER_ADDRESS",
    default: "2048",
    help: "maximum number of open connections from one address that is not in --trusted-proxies; 0 for no limit",
    read: integer(0, 1_000_000),
  }),
} as const;

/** The settings of client addresses and trusted proxies, and of the limits on streams, requests and responses. */
export const TRAFFIC_SETTINGS = {
  trustedProxies: setting({
    flag: "--trusted-proxies",
    argument: "networks",
    env: "CHARTROOM_TRUSTED_PROXIES",
    default: "",
    help: "comma-separated addresses or ranges of proxies whose X-Forwarded-For is trusted to name the client; none by default",
    read: networks,
  }),
  ...RATE_SETTINGS,
  ...STREAM_SETTINGS,
  ...OUTPUT_SETTINGS,
  callerBodyBytes: setting({
    flag: "--caller-body-bytes",
    argument: "MiB",
    env: "CHARTROOM_CALLER_BODY_BYTES",
    default: "128",
    help: "request bodies of one caller in memory at the same time; the largest body takes 59, or up to twice that if compressed",
    read: integer(MIN_BODY_MIB, 4_096),
  }),
  bodyBytes: setting({
    flag: "--body-bytes",
    argument: "MiB",
    env: "CHARTROOM_BODY_BYTES",
    default: "256",
    help: "request bodies of all callers in memory at the same time; beyond it, callers must retry; webhook deliveries have 64 of their own",
    read: integer(MIN_BODY_MIB, 65_536),
  }),
} as const;
