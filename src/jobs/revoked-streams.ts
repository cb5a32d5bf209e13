import { CHECK_EVERY_MS } from "../services/call/account-signals.ts";
import type { MakeJob } from "./job.ts";

/** Ends the streams of callers that have lost the right to them. */
export const revokedStreamsJob: MakeJob = ({ accountSignals }) => ({
  name: "revoked-streams",
  everyMs: CHECK_EVERY_MS,
  run: () => accountSignals.check(),
});
