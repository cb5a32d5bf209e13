import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** How often jobs run, and how long work is held. */
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
} as const;
