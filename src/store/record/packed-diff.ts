import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { AuditLogTable } from "./record-schema.ts";

/**
 * Dictionary of texts that diffs have in common, the most frequent ones last. Packed diffs can only be read with the
 * dictionary they were packed with, so it is never edited. Another dictionary needs another column.
 */
const TEXTS = [
  // Executions.
  '{"id":[null,""],"metadata":[null,{"workflowId":"","startedAt":"","creator":{"id":"","principal":"PRINCIPAL_USER"},',
  '"executor":{"id":"","principal":"PRINCIPAL_USER"},"retriedExecutionId":""}],"spec":[null,{"session":"",',
  '"desiredPhase":"WORKFLOW_EXECUTION_PHASE_COMPLETED","trigger":{"manual":{},"context":{"projects":{"projectIds":["',
  '"repositories":{"repositoryUrls":{"repoUrls":["https://.git","https://"]},"environmentClassId":""}}},',
  '"action":{"limits":{"maxParallel":5,"maxTotal":10,"perExecution":{"maxTime":"3600s"}},"steps":[{"task":{"command":"',
  '{"pullRequest":{"title":"","description":"","branch":"","draft":false}},{"agent":{"prompt":""}},{"report":{"outputs":[',
  '"status":[null,{"session":"","phase":"WORKFLOW_EXECUTION_PHASE_PENDING","pendingActionCount":0,',
  '"runningActionCount":0,"failedActionCount":0,"doneActionCount":0,"failureMessage":"","warningMessage":"",',
  '"failures":[],"warnings":[],"stoppedActionCount":0,"conclusion":"WORKFLOW_EXECUTION_CONCLUSION_UNSPECIFIED"}]}',
  // Actions.
  '{"metadata.finishedAt":[null,""],"status.phase":["WORKFLOW_EXECUTION_ACTION_PHASE_STOPPED"],"status.failures":[[],',
  '[{"reason":"step_failed","message":"","metadata":{}}]],"status.failureMessage":["",""],"status.warnings":[[],[{',
  '{"id":[null,""],"metadata":[null,{"workflowExecutionId":"","workflowId":"","actionName":"","report":false}],',
  '"spec":[null,{"session":"","desiredPhase":"WORKFLOW_EXECUTION_ACTION_PHASE_DONE",',
  '"context":{"projectId":""}}],"limits":{"maxTime":"","context":{"contextUrl":{"url":"https://.git",',
  '"environmentClassId":""}}}],"status":[null,{"session":"","phase":"WORKFLOW_EXECUTION_ACTION_PHASE_PENDING",',
  '"stepStatuses":[],"environmentId":"","failureMessage":"","agentExecutionId":"","warningMessage":"",',
  '"failures":[],"warnings":[],"attempt":0}]}',
  '{"metadata.startedAt":[null,"2026-01-01T00:00:00.000Z"],"status.phase":["WORKFLOW_EXECUTION_ACTION_PHASE_PENDING",',
  '"WORKFLOW_EXECUTION_ACTION_PHASE_RUNNING"],"status.stepStatuses":[[],[{"stepIndex":0,',
  '"phase":"STEP_PHASE_PENDING","failureMessage":"","pullRequestUrl":""}]],"status.environmentId":["",""],',
  '"status.attempt":[0,1]}',
  '{"status.stepStatuses":[[{"stepIndex":0,"phase":"STEP_PHASE_PENDING","failureMessage":"","pullRequestUrl":""}],',
  '[{"stepIndex":0,"phase":"STEP_PHASE_RUNNING","failureMessage":"","startedAt":"2026-01-01T00:00:00.000Z",',
  '"phase":"STEP_PHASE_DONE","failureMessage":"","startedAt":"2026-01-01T00:00:00.000Z",',
  '"finishedAt":"2026-01-01T00:00:00.000Z","pullRequestUrl":""}]]}',
  // Environments.
  '"machine":{"class":""},"desiredPhase":"ENVIRONMENT_PHASE_STOPPED","ports":[],"secrets":[],"timeout":{"disconnected":"',
  '{"id":["",null],"metadata":[{"organizationId":"","annotations":{},"id":[null,""],"metadata":[null,{"organizationId":"',
  '","annotations":{},"name":"","creator":{"id":"","principal":"PRINCIPAL_USER"},"originalContextUrl":"",',
  '"createdAt":"2026-01-01T00:00:00.000Z","projectId":"","runnerId":"","sessionId":""},null],"spec":[{"specVersion":"1",',
  '"sessionId":""}],"spec":[null,{"specVersion":"1","desiredPhase":"ENVIRONMENT_PHASE_RUNNING","content":{"session":"",',
  '"initializer":{"specs":[{"contextUrl":{"url":""}},{"git":{"remoteUri":"https://.git","upstreamRemoteUri":"",',
  '"targetMode":"CLONE_TARGET_MODE_UNSPECIFIED","cloneTarget":"","checkoutLocation":""}}]},"gitUsername":"",',
  '"gitEmail":""},"admission":"ADMISSION_LEVEL_UNSPECIFIED","workflowActionId":"","securityPolicyId":""},null],',
  '"status":[{"statusVersion":"3","phase":"ENVIRONMENT_PHASE_RUNNING","failureMessage":[],"warningMessage":[]},null]}',
  '"securityPolicyId":""}],"status":[null,{"statusVersion":"2","phase":"ENVIRONMENT_PHASE_CREATING",',
  '"failureMessage":[],"warningMessage":[]}]}',
];

export const DICTIONARY = Buffer.from(TEXTS.join(""));

type DiffColumns = Pick<AuditLogTable, "diff" | "packed_diff">;

/**
 * Range of lengths of diffs that are packed, in bytes: shorter ones gain little, longer ones are read alone
 * (../listed-row.ts).
 */
const MIN_BYTES = 256;
const MAX_BYTES = 8_192;

/** Binary logarithm of the maximum distance to a repeated text, which covers a whole diff and the dictionary. */
const WINDOW_BITS = 13;

/**
 * Size of the output buffer of packing, in bytes; another is allocated whenever it is full. The default of 16 KiB for
 * each diff, most of which are packed into a few hundred bytes, takes a third of the processor time of packing.
 */
const CHUNK_BYTES = 1_024;

const PACKING = {
  level: 3,
  memLevel: 5,
  windowBits: WINDOW_BITS,
  dictionary: DICTIONARY,
  chunkSize: CHUNK_BYTES,
};

const UNPACKING = { windowBits: WINDOW_BITS, dictionary: DICTIONARY, maxOutputLength: MAX_BYTES };

/** Returns the columns of a diff. Diffs are most of the record's bytes, and those of one type are similar. */
export function packDiff(diff: string): DiffColumns {
  const bytes = diff.length > MAX_BYTES ? undefined : Buffer.from(diff);
  if (!bytes || bytes.length < MIN_BYTES || bytes.length > MAX_BYTES) return { diff, packed_diff: null };
  return { diff: "", packed_diff: deflateRawSync(bytes, PACKING) };
}

/**
 * Returns the text of a diff: that of the column `diff`, followed by the packed text. At most one of them is not
 * empty.
 * @throws Error when the packed text was changed from outside
 */
export function diffOf({ diff, packed_diff }: DiffColumns): string {
  return packed_diff === null ? diff : diff + inflateRawSync(packed_diff, UNPACKING).toString();
}

/** Returns the text of a diff for a check of its hash; for one that cannot be unpacked, a text that matches no hash. */
export function diffOfTampered(row: DiffColumns): string {
  try {
    return diffOf(row);
  } catch {
    return "";
  }
}
