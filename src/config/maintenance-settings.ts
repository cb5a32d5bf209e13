import { AUDIT_FLOOR_DAYS } from "../domain/record/audit-ageing.ts";
import { baseUrl, integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** Maximum number of records that a retention setting can keep; they are scanned from the newest on. */
const COUNT_MAX = 100_000;

const DAYS_MAX = 3_650;

/** Reads the days for which the audit trail is kept; 0 keeps it forever. */
function auditDays(text: string): number {
  const days = integer(0, DAYS_MAX)(text);
  if (days > 0 && days < AUDIT_FLOOR_DAYS)
    throw new Error(`must be 0 (no limit) or from ${AUDIT_FLOOR_DAYS} to ${DAYS_MAX}, not "${text}"`);
  return days;
}

/** The default retention of ended records, for organizations whose policy does not set it. */
export const RETENTION_SETTINGS = {
  executionRetention: setting({
    flag: "--execution-retention",
    argument: "days",
    env: "CHARTROOM_EXECUTION_RETENTION",
    default: "0",
    help: "how long to keep ended workflow executions with their actions, logs and outputs; 0 for no limit",
    read: integer(0, DAYS_MAX),
  }),
  executionCount: setting({
    flag: "--execution-count",
    argument: "number",
    env: "CHARTROOM_EXECUTION_COUNT",
    default: "0",
    help: "how many ended executions of each workflow to keep; 0 for all",
    read: integer(0, COUNT_MAX),
  }),
  agentExecutionRetention: setting({
    flag: "--agent-execution-retention",
    argument: "days",
    env: "CHARTROOM_AGENT_EXECUTION_RETENTION",
    default: "0",
    help: "how long to keep stopped agent executions with their blocks and diffs; 0 for no limit",
    read: integer(0, DAYS_MAX),
  }),
  agentExecutionCount: setting({
    flag: "--agent-execution-count",
    argument: "number",
    env: "CHARTROOM_AGENT_EXECUTION_COUNT",
    default: "0",
    help: "how many stopped agent executions of each organization to keep; 0 for all",
    read: integer(0, COUNT_MAX),
  }),
  triggerEntryRetention: setting({
    flag: "--trigger-entry-retention",
    argument: "days",
    env: "CHARTROOM_TRIGGER_ENTRY_RETENTION",
    default: "30",
    help: "how long to keep entries of trigger ledgers; 0 for no limit",
    read: integer(0, DAYS_MAX),
  }),
  triggerEntryCount: setting({
    flag: "--trigger-entry-count",
    argument: "number",
    env: "CHARTROOM_TRIGGER_ENTRY_COUNT",
    default: "0",
    help: "how many trigger ledger entries of each workflow to keep; 0 for all",
    read: integer(0, COUNT_MAX),
  }),
  eventRetention: setting({
    flag: "--event-retention",
    argument: "days",
    env: "CHARTROOM_EVENT_RETENTION",
    default: "30",
    help: "how long to keep events for resuming streams; the audit log has its own setting",
    read: integer(1, DAYS_MAX),
  }),
  eventCount: setting({
    flag: "--event-count",
    argument: "number",
    env: "CHARTROOM_EVENT_COUNT",
    default: "0",
    help: "how many events of each organization to keep; 0 for all",
    read: integer(0, COUNT_MAX),
  }),
} as const;

/** The settings of the targets to which the audit trail is exported continuously. */
export const AUDIT_SETTINGS = {
  auditFile: setting({
    flag: "--audit-file",
    argument: "file",
    env: "CHARTROOM_AUDIT_FILE",
    default: "",
    help: "file to which the audit log is exported continuously, in the format of `chartroom audit export`; none by default",
    read: (text: string) => text.trim(),
  }),
  auditFileSize: setting({
    flag: "--audit-file-size",
    argument: "MiB",
    env: "CHARTROOM_AUDIT_FILE_SIZE",
    default: "100",
    help: "size at which the audit file is rotated: its name gets the time as a suffix",
    read: integer(1, 1_048_576),
  }),
  auditFileCount: setting({
    flag: "--audit-file-count",
    argument: "number",
    env: "CHARTROOM_AUDIT_FILE_COUNT",
    default: "0",
    help: "how many rotated audit files to keep; 0 for all",
    read: integer(0, 100_000),
  }),
  auditOtlpEndpoint: setting({
    flag: "--audit-otlp-endpoint",
    argument: "url",
    env: "CHARTROOM_AUDIT_OTLP_ENDPOINT",
    default: "",
    help: "URL of an OTLP/HTTP collector for the audit log, such as http://127.0.0.1:4318; none by default",
    read: baseUrl,
  }),
} as const;

/** The settings of how long the audit trail stays in the database, for installations that export it. */
export const AUDIT_RETENTION_SETTINGS = {
  auditRetention: setting({
    flag: "--audit-retention",
    argument: "days",
    env: "CHARTROOM_AUDIT_RETENTION",
    default: "0",
    help: `how long to keep rows of the audit log that were exported to --audit-file and --audit-otlp-endpoint, at least ${AUDIT_FLOOR_DAYS}; 0 for no limit`,
    read: auditDays,
  }),
} as const;

/** The limits on stored data, and on how long it is stored. */
export const STORAGE_SETTINGS = {
  ...RETENTION_SETTINGS,
  ...AUDIT_SETTINGS,
  ...AUDIT_RETENTION_SETTINGS,
  organizationQuota: setting({
    flag: "--organization-quota",
    argument: "MiB",
    env: "CHARTROOM_ORGANIZATION_QUOTA",
    default: "102400",
    help: "storage quota of an organization; beyond it, writes that add data are rejected; 0 for no limit",
    read: integer(0, 1_073_741_824),
  }),
  diskFloor: setting({
    flag: "--disk-floor",
    argument: "MiB",
    env: "CHARTROOM_DISK_FLOOR",
    default: "128",
    help: "minimum free space on the disk of the data folder; below it, the server is not ready; 0 for no minimum",
    read: integer(0, 1_073_741_824),
  }),
  backupFolder: setting({
    flag: "--backup-folder",
    argument: "folder",
    env: "CHARTROOM_BACKUP_FOLDER",
    default: "",
    help: "folder to which `chartroom backup --schedule` writes; the metrics then report the age of the last good backup",
    read: (text: string) => text,
  }),
} as const;

/**
 * Returns the quota in bytes.
 * @param organizationQuota of the settings, in MiB
 */
export function quotaBytesOf({ organizationQuota }: { readonly organizationQuota: number }): number {
  return organizationQuota === 0 ? Number.POSITIVE_INFINITY : organizationQuota * 1024 * 1024;
}

/** Returns the minimum free space on the data folder's disk, in bytes. */
export function diskFloorBytesOf({ diskFloor }: { readonly diskFloor: number }): number {
  return diskFloor * 1024 * 1024;
}

/** The settings of the intervals of jobs, and of the time for which work is leased. */
export const INTERVAL_SETTINGS = {
  popularityInterval: setting({
    flag: "--popularity-interval",
    argument: "seconds",
    env: "CHARTROOM_POPULARITY_INTERVAL",
    default: "300",
    help: "how often to compute the popularity of projects with new environments",
    read: integer(1, 86_400),
  }),
  removalInterval: setting({
    flag: "--removal-interval",
    argument: "seconds",
    env: "CHARTROOM_REMOVAL_INTERVAL",
    default: "10",
    help: "how often to remove projects that are pending deletion and expired exchange tokens",
    read: integer(1, 86_400),
  }),
  leaseDuration: setting({
    flag: "--lease-duration",
    argument: "seconds",
    env: "CHARTROOM_LEASE_DURATION",
    default: "30",
    help: "how long a lease of a runner lasts without a heartbeat before another runner gets the work",
    read: integer(5, 3_600),
  }),
  agentSlotTime: setting({
    flag: "--agent-slot-time",
    argument: "seconds",
    env: "CHARTROOM_AGENT_SLOT_TIME",
    default: "300",
    help: "how long an agent that waits for input keeps its runner's slot, if it can resume in a new process; 0 for no limit",
    read: integer(0, 86_400),
  }),
  runnerWait: setting({
    flag: "--runner-wait",
    argument: "seconds",
    env: "CHARTROOM_RUNNER_WAIT",
    default: "86400",
    help: "how long work waits for a runner that supports its policies before it fails",
    read: integer(1, 86_400),
  }),
} as const;
