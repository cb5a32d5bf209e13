import type { Compilable, ExpressionBuilder } from "kysely";
import { WorkKind, WorkKindSchema } from "#gen/runner/v1/work_pb.js";
import { type PolicySet, policiesWithout } from "../../domain/runner/kept-policies.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";
import { findHeldNeeds } from "./held-work.ts";
import { AGENT_WITH_ENVIRONMENT, API_AGENT_WITH_ENVIRONMENT, type StoredWork } from "./work.ts";

/** A runner that asks for work, and the work that it accepts. */
export interface Claimant extends Scope {
  /**
   * Ids that work may be bound to: the runner's own, and for a local runner also that of the local
   * configuration.
   */
  readonly runnerIds: readonly [own: string, local?: string];
  /** WorkKinds by number; empty for every kind. */
  readonly kinds: readonly number[];
  /** True if it accepts agent executions together with their new environments; false when absent. */
  readonly agentsWithEnvironment?: boolean;
  /** True if it accepts agents that are defined by the API; false when absent. */
  readonly apiAgents?: boolean;
  /** Ids of the classes that it serves; work without a class always fits. */
  readonly environmentClassIds: readonly string[];
  /** The set of the policies under which it may be given work. */
  readonly keeps: PolicySet;
}

const EVERY_KIND = WorkKindSchema.values
  .map(({ number }) => number)
  .filter((kind) => kind !== WorkKind.UNSPECIFIED);

/** Maximum number of kind and class pairs in one query; more are looked up in several. SQLite accepts up to 500. */
const MAX_PAIRS = 60;

interface NextWork {
  readonly organizationId: string;
  readonly runnerId: string;
  readonly otherRunnerId: string;
  readonly now: number;
  readonly limit: number;
  /** Policies that held work needs, all of which the runner supports; 0 for open work. */
  readonly needs: PolicySet;
  readonly kinds: readonly number[];
  /** Null represents work without a class. */
  readonly classIds: readonly (string | null)[];
}

/**
 * The state of queued work: open to all runners until it is withheld from one that does not support what it needs, and
 * held for other runners from then on. Each state has an index; that of held work begins with what the work needs, so
 * that work that a runner may not have is not read.
 */
type QueueState = "open" | "held";

/** The values of a query by its parameters, `kind0` and `class0` being the first of each. */
type NextValues = Omit<NextWork, "kinds" | "classIds"> & Readonly<Record<string, unknown>>;

/**
 * Returns the next work of each of a number of kinds and classes in one query. Each pair is found by the index alone:
 * work that the runner does not accept is never read, however much there is.
 */
function nextOfPairs(state: QueueState, kindCount: number, classCount: number, withoutClass: boolean) {
  return prepared<NextValues, StoredWork>((db, values) => {
    const ofPair = (kind: string, classId: string | undefined) => {
      const ready = db
        .selectFrom("work")
        .selectAll()
        .where("organization_id", "=", values.organizationId)
        .where("kind", "=", values[kind] as number)
        .where("leased_by", "is", null)
        .where(state === "open" ? isOpen : isHeld)
        .where("not_before", "<=", values.now)
        .where((eb) =>
          eb.or([
            eb("runner_id", "is", null),
            eb("runner_id", "in", [values.runnerId, values.otherRunnerId]),
          ]),
        );
      const fit = state === "open" ? ready : ready.where("needs", "=", values.needs);
      const ofClass =
        classId === undefined
          ? fit.where("environment_class_id", "is", null)
          : fit.where("environment_class_id", "=", values[classId] as string);
      // The groups have the same order within every turn: by arrival, one could be served twice before another.
      const next = ofClass.orderBy("turn").orderBy("group_id").orderBy("id").limit(values.limit);
      return db.selectFrom(next.as("next")).selectAll();
    };
    const classes = Array.from({ length: classCount }, (_, index) => `class${index}`);
    const pairs = Array.from({ length: kindCount }, (_, index) => `kind${index}`).flatMap((kind) =>
      [...(withoutClass ? [undefined] : []), ...classes].map((classId) => ofPair(kind, classId)),
    );
    return pairs.reduce((all, pair) => all.unionAll(pair)) as Compilable<StoredWork>;
  });
}

/** The conditions of the two indexes, exactly as the indexes define them. */
const isOpen = (eb: ExpressionBuilder<Schema, "work">) => eb("needs", "=", eb.lit(0));
const isHeld = (eb: ExpressionBuilder<Schema, "work">) => eb("needs", "<>", eb.lit(0));

const queries = new Map<string, ReturnType<typeof nextOfPairs>>();

async function selectNext(db: Reader, next: NextWork): Promise<StoredWork[]> {
  const { kinds, classIds, ...values } = next;
  const state: QueueState = values.needs === 0 ? "open" : "held";
  const named = classIds.filter((id) => id !== null);
  const withoutClass = named.length < classIds.length;
  const shape = `${state} ${kinds.length} ${named.length} ${withoutClass}`;
  const query = queries.get(shape) ?? nextOfPairs(state, kinds.length, named.length, withoutClass);
  queries.set(shape, query);
  return query(db, {
    ...values,
    ...Object.fromEntries(kinds.map((kind, index) => [`kind${index}`, kind])),
    ...Object.fromEntries(named.map((id, index) => [`class${index}`, id])),
  });
}

/** Returns the kinds of rows that a runner accepts. */
export function kindsFor({
  kinds,
  agentsWithEnvironment = false,
  apiAgents = false,
}: Pick<Claimant, "kinds" | "agentsWithEnvironment" | "apiAgents">): readonly number[] {
  const asked = kinds.length > 0 ? [...new Set(kinds)] : EVERY_KIND;
  const leasedAs = agentsWithEnvironment ? WorkKind.AGENT : WorkKind.ENVIRONMENT;
  if (!asked.includes(leasedAs)) return asked;
  return [...asked, AGENT_WITH_ENVIRONMENT, ...(apiAgents ? [API_AGENT_WITH_ENVIRONMENT] : [])];
}

/**
 * Returns up to `limit` pieces of work that a runner accepts at `now`, in the order of their turns; for reads and
 * writes.
 */
export async function findClaimable(
  db: Reader,
  claimant: Claimant,
  now: number,
  limit: number,
): Promise<StoredWork[]> {
  const { organizationId, runnerIds, environmentClassIds, keeps } = claimant;
  const [runnerId = "", otherRunnerId = runnerId] = runnerIds;
  const wanted = kindsFor(claimant);
  const classIds = [null, ...environmentClassIds];
  const classesPerQuery = Math.floor(MAX_PAIRS / wanted.length);
  const found: StoredWork[] = [];
  const held = keeps === 0 ? [] : await findHeldNeeds(db, { organizationId });
  const kept = held.filter((needs) => policiesWithout(needs, keeps) === 0);
  for (let at = 0; at < classIds.length; at += classesPerQuery) {
    const some = classIds.slice(at, at + classesPerQuery);
    const values = { organizationId, runnerId, otherRunnerId, now, limit };
    const next = { ...values, kinds: wanted, classIds: some };
    for (const needs of [0, ...kept]) found.push(...(await selectNext(db, { ...next, needs })));
  }
  return found.sort(byTurn).slice(0, limit);
}

function byTurn(one: StoredWork, other: StoredWork): number {
  if (one.turn !== other.turn) return one.turn - other.turn;
  if (one.group_id !== other.group_id) return one.group_id < other.group_id ? -1 : 1;
  return one.id < other.id ? -1 : 1;
}
