import { CHECK_EVERY_MS } from "../services/call/revocation-monitor.ts";
import type { JobFactory } from "./job.ts";

/** Ends the streams of callers whose access was revoked. */
export const revokedStreamsJob: JobFactory = ({ revocationMonitor }) => ({
  name: "revoked-streams",
  everyMs: CHECK_EVERY_MS,
  isLocal: true,
  run: () => revocationMonitor.check(),
});
