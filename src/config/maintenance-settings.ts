import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The limits on stored data, and on how long it is stored. */
export const STORAGE_SETTINGS = {
  organizationQuota: setting({
    flag: "--organization-quota",
    argument: "MiB",
    env: "CHARTROOM_ORGANIZATION_QUOTA",
    default: "102400",
    help: "what one organization may store before writes that add to it are refused; 0 for no bound",
    read: integer(0, 1_073_741_824),
  }),
  eventRetention: setting({
    flag: "--event-retention",
    argument: "days",
    env: "CHARTROOM_EVENT_RETENTION",
    default: "30",
    help: "how long events are kept for streams that resume; the audit trail is kept for good",
    read: integer(1, 3_650),
  }),
  diskFloor: setting({
    flag: "--disk-floor",
    argument: "MiB",
    env: "CHARTROOM_DISK_FLOOR",
    default: "128",
    help: "the server is not ready while the disk of the data folder has less room than this; 0 for no floor",
    read: integer(0, 1_073_741_824),
  }),
} as const;

/**
 * Returns the quota in bytes.
 * @param organizationQuota of the settings, in MiB
 */
export function quotaBytesOf({ organizationQuota }: { readonly organizationQuota: number }): number {
  return organizationQuota === 0 ? Number.POSITIVE_INFINITY : organizationQuota * 1024 * 1024;
}

/** Returns the floor of the data folder's disk in bytes. */
export function diskFloorBytesOf({ diskFloor }: { readonly diskFloor: number }): number {
  return diskFloor * 1024 * 1024;
}

/** The intervals of jobs, and the time for which work is held. */
export const INTERVAL_SETTINGS = {
  popularityInterval: setting({
    flag: "--popularity-interval",
    argument: "seconds",
    env: "CHARTROOM_POPULARITY_INTERVAL",
    default: "300",
    help: "how often the popularity of projects with new environments is computed",
    read: integer(1, 86_400),
  }),
  removalInterval: setting({
    flag: "--removal-interval",
    argument: "seconds",
    env: "CHARTROOM_REMOVAL_INTERVAL",
    default: "10",
    help: "how often projects that are pending deletion and expired exchange tokens are removed",
    read: integer(1, 86_400),
  }),
  leaseDuration: setting({
    flag: "--lease-duration",
    argument: "seconds",
    env: "CHARTROOM_LEASE_DURATION",
    default: "30",
    help: "how long a runner holds work without a sign of life before another gets it",
    read: integer(5, 3_600),
  }),
  agentSlotTime: setting({
    flag: "--agent-slot-time",
    argument: "seconds",
    env: "CHARTROOM_AGENT_SLOT_TIME",
    default: "300",
    help: "how long an agent that waits for input keeps its runner's slot, if it can go on in another process; 0 for good",
    read: integer(0, 86_400),
  }),
} as const;
