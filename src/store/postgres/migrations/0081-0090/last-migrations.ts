import * as ninetyFirst from "../0091-0100/0091-shorter-pending-list.ts";
import * as eightyFirst from "./0081-address-origin.ts";
import * as eightyThird from "./0083-audit-anchor.ts";
import * as eightyEighth from "./0088-sealed-positions.ts";
import * as eightyNinth from "./0089-event-subscription.ts";
import * as ninetieth from "./0090-prebuild-creator.ts";

/** The migrations of this folder and the next, in their order, so that the list of all stays short. */
export const lastMigrations = [
  eightyFirst,
  eightyThird,
  eightyEighth,
  eightyNinth,
  ninetieth,
  ninetyFirst,
] as const;
