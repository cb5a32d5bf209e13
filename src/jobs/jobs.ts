import { actionTimeJob } from "./action-time.ts";
import { agentTimersJob } from "./agent-timers.ts";
import { archiveJob } from "./archive.ts";
import { deletionJob } from "./deletion.ts";
import { eventPruningJob } from "./event-pruning.ts";
import { executionsJob } from "./executions.ts";
import type { MakeJob } from "./job.ts";
import { leasesJob } from "./leases.ts";
import { lifetimeJob } from "./lifetime.ts";
import { popularityJob } from "./popularity.ts";
import { prebuildsJob, prebuildTimeJob } from "./prebuilds.ts";
import { projectRemovalJob } from "./project-removal.ts";
import { responseExpiryJob } from "./response-expiry.ts";
import { revokedStreamsJob } from "./revoked-streams.ts";
import { runnerSilenceJob } from "./runner-silence.ts";
import { schedulesJob } from "./schedules.ts";
import { stopsJob } from "./stops.ts";
import { storageJob } from "./storage.ts";
import { tokenExpiryJob } from "./token-expiry.ts";
import { triggerPruningJob } from "./trigger-pruning.ts";
import { workflowRemovalJob } from "./workflow-removal.ts";

/** All jobs of a server. */
export const JOBS: readonly MakeJob[] = [
  actionTimeJob,
  agentTimersJob,
  responseExpiryJob,
  archiveJob,
  deletionJob,
  eventPruningJob,
  executionsJob,
  leasesJob,
  lifetimeJob,
  popularityJob,
  prebuildTimeJob,
  prebuildsJob,
  projectRemovalJob,
  revokedStreamsJob,
  runnerSilenceJob,
  schedulesJob,
  stopsJob,
  storageJob,
  tokenExpiryJob,
  triggerPruningJob,
  workflowRemovalJob,
];
