import { CHECK_EVERY_MS } from "../services/call/revocation-monitor.ts";
import type { JobFactory } from "./job.ts";

/** Interval of the checks for slow readers, in milliseconds: one is cut off at most this much late. */
const SLOW_READERS_EVERY_MS = 500;

/** Ends the streams of callers whose access was revoked. */
export const revokedStreamsJob: JobFactory = ({ revocationMonitor }) => ({
  name: "revoked-streams",
  everyMs: CHECK_EVERY_MS,
  isLocal: true,
  run: () => revocationMonitor.check(),
});

/** Cuts off readers that take nothing of what waits for them. */
export const slowReadersJob: JobFactory = ({ output }) => ({
  name: "slow-readers",
  everyMs: SLOW_READERS_EVERY_MS,
  isLocal: true,
  run: async () => output.pass(SLOW_READERS_EVERY_MS),
});

/** Several servers let through as much as one does, within what is called in this time. */
const EXCHANGE_EVERY_MS = 1_000;

/** Tells the other servers whose calls this one has let through. */
export const callExchangeJob: JobFactory = ({ limits }) => ({
  name: "call exchange",
  everyMs: EXCHANGE_EVERY_MS,
  isLocal: true,
  run: async () => limits.exchange(),
});
