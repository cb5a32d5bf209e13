import type { JsonValue } from "@bufbuild/protobuf";
import type { FilledColumns, RowFill } from "../row-fill.ts";

/**
 * The rows of executions and actions from before their progress had columns of its own, for the migration of both
 * engines. It reads the stored JSON as it was then, so that it does not change with the messages.
 */

type Fields = Record<string, JsonValue>;

interface EarlierRow {
  readonly body: string;
}

/** The fills that rewrite all earlier rows. */
export const progressFills: readonly RowFill[] = [
  { table: "workflow_execution", marker: "progress", rewrite: unlessDamaged(rewrittenExecution) },
  { table: "workflow_action", marker: "progress", rewrite: unlessDamaged(rewrittenAction) },
];

/** Leaves an unreadable body unchanged: one such row must not prevent a server from starting. */
function unlessDamaged(rewrite: RowFill["rewrite"]): RowFill["rewrite"] {
  return (row) => {
    try {
      return rewrite(row);
    } catch {
      return { ...rewrite({ ...row, body: "{}" }), body: row.body };
    }
  };
}

/** Returns the columns of an action whose body contained everything. */
function rewrittenAction({ body }: EarlierRow): FilledColumns {
  const { metadata, spec, status } = partsOf(body);
  const { actionName = "" } = metadata;
  const { context, limits } = spec;
  const { phase: _, environmentId: __, attempt, ...progress } = status;
  return {
    session: String(spec.session ?? ""),
    finished_at: timeOf(metadata.finishedAt),
    attempt: Number(attempt ?? 0),
    progress: progressText(progress, spec.session),
    body: JSON.stringify({
      metadata: { actionName },
      spec: { ...(context !== undefined && { context }), ...(limits !== undefined && { limits }) },
    }),
  };
}

/**
 * Returns the columns of an execution whose body contained everything but its plan, its counts and its actions'
 * errors.
 */
function rewrittenExecution({ body }: EarlierRow): FilledColumns {
  const { id, metadata, spec, status } = partsOf(body);
  const { finishedAt: _, ...fixed } = metadata;
  const { session, desiredPhase: __, ...plan } = spec;
  const progress = Object.entries(status).filter(
    ([name]) => name !== "phase" && name !== "conclusion" && !name.endsWith("ActionCount"),
  );
  return {
    session: String(session ?? ""),
    progress: progressText(Object.fromEntries(progress), session),
    body: JSON.stringify({ id, metadata: fixed, spec: plan }),
  };
}

function partsOf(body: string) {
  const { id = "", metadata, spec, status } = JSON.parse(body) as Fields;
  const fields = (value: JsonValue | undefined) => (value ?? {}) as Fields;
  return { id, metadata: fields(metadata), spec: fields(spec), status: fields(status) };
}

/** Returns a status without its empty values, and without the session if it equals that of the specification. */
function progressText({ session, ...status }: Fields, ofSpec: JsonValue | undefined): string {
  return JSON.stringify(withoutEmpty({ ...(session !== ofSpec && { session: session ?? "" }), ...status }));
}

/** Removes empty values, except messages, whose presence has a meaning, and values of maps. */
function withoutEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, each]) => !isEmpty(each));
  return Object.fromEntries(kept.map(([name, each]) => [name, name === "meta" ? each : withoutEmpty(each)]));
}

function isEmpty(value: JsonValue): boolean {
  return value === "" || value === 0 || value === false || (Array.isArray(value) && value.length === 0);
}

function timeOf(value: JsonValue | undefined): number | null {
  return typeof value === "string" ? Date.parse(value) : null;
}
