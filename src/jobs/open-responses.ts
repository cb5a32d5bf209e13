import { CHECK_EVERY_MS } from "../services/call/revocation-monitor.ts";
import type { JobFactory } from "./job.ts";

/** Interval of the checks for slow readers, in milliseconds: the maximum delay of a disconnection. */
const SLOW_READERS_EVERY_MS = 500;

/** Ends the streams of callers whose access was revoked. */
export const revokedStreamsJob: JobFactory = ({ revocationMonitor }) => ({
  name: "revoked-streams",
  everyMs: CHECK_EVERY_MS,
  isLocal: true,
  run: () => revocationMonitor.check(),
});

/** Disconnects readers that do not read the data waiting for them. */
export const slowReadersJob: JobFactory = ({ output }) => ({
  name: "slow-readers",
  everyMs: SLOW_READERS_EVERY_MS,
  isLocal: true,
  run: async () => output.pass(SLOW_READERS_EVERY_MS),
});

/** Several servers together allow as many calls as one, plus the calls made within this interval. */
const EXCHANGE_EVERY_MS = 1_000;

/** Reports the callers whose calls this server has allowed to the other servers. */
export const callExchangeJob: JobFactory = ({ limits }) => ({
  name: "call exchange",
  everyMs: EXCHANGE_EVERY_MS,
  isLocal: true,
  run: async () => limits.exchange(),
});
