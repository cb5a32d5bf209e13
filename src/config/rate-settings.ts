import { integer, oneOf } from "./setting-values.ts";
import { setting } from "./settings.ts";

const most = 1_000_000_000;

/** Limits of the calls of a token, an account, an address and an organization; see docs/rate-limits.md. */
export const RATE_SETTINGS = {
  rateLimits: setting({
    flag: "--rate-limits",
    argument: "on|off",
    env: "CHARTROOM_RATE_LIMITS",
    default: "on",
    help: "refuse calls past the limits of tokens, accounts, organizations and addresses; off answers all",
    read: oneOf<"on" | "off">(["on", "off"]),
  }),
  callsPerToken: setting({
    flag: "--calls-per-token",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_TOKEN",
    default: "120000",
    help: "calls in a minute with one token, a tenth of them at once",
    read: integer(1, most),
  }),
  callsPerAccount: setting({
    flag: "--calls-per-account",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_ACCOUNT",
    default: "240000",
    help: "calls in a minute of one account with all of its tokens, a tenth of them at once",
    read: integer(1, most),
  }),
  callsPerServer: setting({
    flag: "--calls-per-server",
    argument: "number",
    env: "CHARTROOM_CALLS_PER_SERVER",
    default: "600000",
    help: "calls in a minute past which this server shares what it answers fairly among organizations; 0 for no bound",
    read: integer(0, most),
  }),
  refusalsPerAddress: setting({
    flag: "--refusals-per-address",
    argument: "number",
    env: "CHARTROOM_REFUSALS_PER_ADDRESS",
    default: "60000",
    help: "requests in a minute from one address that are refused without a known caller, a tenth of them at once; then none is looked at",
    read: integer(1, most),
  }),
  connectionsPerAddress: setting({
    flag: "--connections-per-address",
    argument: "number",
    env: "CHARTROOM_CONNECTIONS_PER_ADDRESS",
    default: "2048",
    help: "connections that one address may have open at the same time, if it is none of --trusted-proxies; 0 for no bound",
    read: integer(0, 1_000_000),
  }),
} as const;
