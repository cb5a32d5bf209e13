import { actionTimeoutJob } from "./action-timeout.ts";
import { agentSlotsJob, agentTimersJob, approvalExpiryJob } from "./agent-timers.ts";
import { auditExportJobs } from "./audit-export.ts";
import { environmentArchivingJob } from "./environment-archiving.ts";
import { environmentDeletionJob } from "./environment-deletion.ts";
import { environmentLifetimeJob } from "./environment-lifetime.ts";
import { eventDeliveriesJob } from "./hosts/event-deliveries.ts";
import { executionExpansionJob } from "./hosts/execution-expansion.ts";
import { pullRequestsJob } from "./hosts/pull-requests.ts";
import type { Job, JobContext, JobFactory } from "./job.ts";
import { leaseExpiryJob } from "./lease-expiry.ts";
import { callExchangeJob, revokedStreamsJob, slowReadersJob } from "./open-responses.ts";
import { popularityJob } from "./popularity.ts";
import { prebuildsJob, prebuildTimeoutJob } from "./prebuilds.ts";
import { projectRemovalJob } from "./project-removal.ts";
import { questionExpiryJob } from "./question-expiry.ts";
import { responseExpiryJob } from "./response-expiry.ts";
import { auditAgeingJob } from "./retention/audit-ageing.ts";
import { retentionJob } from "./retention/retention.ts";
import { triggerPruningJob } from "./retention/trigger-pruning.ts";
import { runnerInactivityJob } from "./runner-inactivity.ts";
import { runnerWaitsJob } from "./runner-waits.ts";
import { stopsJob } from "./stops.ts";
import { featureLevelJob, machineCheckJob, storageCheckJob } from "./storage-check.ts";
import { timeTriggersJob } from "./time-triggers.ts";
import { tokenEndJob, tokenExpiryJob } from "./token-expiry.ts";
import { workflowRemovalJob } from "./workflow-removal.ts";

const JOBS: readonly JobFactory[] = [
  actionTimeoutJob,
  agentSlotsJob,
  agentTimersJob,
  auditAgeingJob,
  approvalExpiryJob,
  callExchangeJob,
  responseExpiryJob,
  retentionJob,
  environmentArchivingJob,
  environmentDeletionJob,
  eventDeliveriesJob,
  executionExpansionJob,
  featureLevelJob,
  leaseExpiryJob,
  machineCheckJob,
  environmentLifetimeJob,
  popularityJob,
  prebuildTimeoutJob,
  prebuildsJob,
  projectRemovalJob,
  pullRequestsJob,
  questionExpiryJob,
  revokedStreamsJob,
  runnerInactivityJob,
  runnerWaitsJob,
  slowReadersJob,
  timeTriggersJob,
  stopsJob,
  storageCheckJob,
  tokenEndJob,
  tokenExpiryJob,
  triggerPruningJob,
  workflowRemovalJob,
];

/** Creates all jobs of a server. */
export function createJobs(context: JobContext): Job[] {
  return [...JOBS.map((make) => make(context)), ...auditExportJobs(context)];
}
