import { type WorkflowExecution, WorkflowExecution_SpecSchema } from "#gen/service/v1/workflow_pb.js";
import { planOf, type WorkflowPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { fromBody, toBody } from "../json.ts";
import { textOf } from "../long-text.ts";
import { prepared } from "../prepared.ts";
import { bytesOf } from "../sqlite/expressions.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import { type CachedPlan, PlanCache } from "./plan-cache.ts";
import type { WorkflowPlanTable } from "./workflow-schema.ts";

/** Characters of stored plans whose parsed forms are cached; one workflow has at most 4 Mi. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;

/** A plan never changes and no id is used twice, so that no entry can be out of date. */
const planCache = new PlanCache(MAX_CACHED_CHARACTERS);

const insertRow = prepared<WorkflowPlanTable, unknown>((db, row) =>
  db.insertInto("workflow_plan").values({ execution_id: row.execution_id, body: row.body }),
);

/** Writes the plan of a new execution. */
export async function insertPlan({ db }: WriteTransaction, execution: WorkflowExecution): Promise<void> {
  const plan = planOf(execution);
  const body = toBody(WorkflowExecution_SpecSchema, plan);
  await insertRow(db, { execution_id: execution.id, body });
  planCache.put(execution.id, { plan, characters: body.length });
}

const selectPlan = prepared<{ id: string }, { body: Uint8Array }>((db, { id }) =>
  db
    .selectFrom("workflow_plan")
    .select(bytesOf("workflow_plan.body").as("body"))
    .where("execution_id", "=", id),
);

/** Returns the plan of an execution, whose parts must not be modified: others share them. */
export async function findPlan(db: Reader, executionId: string): Promise<WorkflowPlan> {
  const known = planCache.get(executionId);
  const found = known ?? (await readPlan(db, executionId));
  planCache.put(executionId, found);
  return found.plan;
}

/** Parses a stored plan; an absent one is empty. */
export function planOfText(body: string | null | undefined): WorkflowPlan {
  return fromBody(WorkflowExecution_SpecSchema, body ?? "{}");
}

/** Returns the stored text of a plan; undefined without one. */
export async function findPlanText(db: Reader, executionId: string): Promise<string | undefined> {
  const [row] = await selectPlan(db, { id: executionId });
  return row && textOf(row.body);
}

async function readPlan(db: Reader, id: string): Promise<CachedPlan> {
  const body = await findPlanText(db, id);
  return { plan: planOfText(body), characters: body?.length ?? 0 };
}
