import { progressFills } from "../../../workflow/earlier-progress.ts";

/** Moves what changes of stored executions and actions from their bodies into the columns of 0021-workflow-progress. */
export const name = "0022-workflow-progress-rows";

export const fills = progressFills;
