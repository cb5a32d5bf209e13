import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { EventSubscriptionState } from "#gen/service/v1/event_subscription_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import { UNSENT_STATES } from "./event-subscription/event-delivery.ts";

/** Rows of the same kind. */
interface Counted {
  /** The number of a value of an enum of the contract. */
  readonly of: number;
  readonly count: number;
}

/** The numbers of waiting and running items in an installation, or in an organization, from one moment. */
export interface InstallationCounts {
  /** The work of runners by WorkKind. */
  readonly work: readonly (Counted & {
    readonly isLeased: boolean;
    /** Id of the oldest. */
    readonly oldestId: string;
  })[];
  /** Workflow executions that have not ended, by WorkflowExecutionPhase. */
  readonly workflowExecutions: readonly Counted[];
  /** Agent executions that have not ended, by AgentExecution.Phase. */
  readonly agentExecutions: readonly Counted[];
  /** Environments by EnvironmentPhase. */
  readonly environments: readonly Counted[];
  readonly openApprovals: number;
  /** Subscriptions to events by EventSubscriptionState. */
  readonly eventSubscriptions: readonly Counted[];
  /** Unsent entries of ledgers; a ledger with 100 of them takes no more, and later events are not counted. */
  readonly eventDeliveries: {
    readonly waiting: number;
    /** Those of subscriptions that are paused. */
    readonly paused: number;
    /** Id of the oldest of those that are not paused; undefined without any. */
    readonly oldestId: string | undefined;
  };
  readonly runners: {
    /** Runners that get work. */
    readonly connected: number;
    /** Connected runners that are paused, and therefore get no work. */
    readonly paused: number;
    readonly disconnected: number;
    /** Earliest last heartbeat of the connected ones, in milliseconds since 1970 UTC; undefined without any. */
    readonly oldestSign: number | undefined;
  };
  /** Tokens of people and service accounts that expire before `until` of the count. */
  readonly endingTokens: number;
}

/** The times that a count uses, in milliseconds since 1970 UTC. */
interface CountTimes {
  readonly now: number;
  /** Tokens that expire before this time are counted as ending. */
  readonly until: number;
}

/**
 * Counts waiting and running items in all organizations. Each query reads an index of open items, or all of a covering
 * index.
 *
 * @param db with queries that may take long
 */
export function countInstallation(db: Reader, times: CountTimes): Promise<InstallationCounts> {
  return countWithin(db, undefined, times);
}

/** Counts waiting and running items in one organization, as {@link countInstallation} does in all. */
export function countOrganization(db: Reader, scope: Scope, times: CountTimes): Promise<InstallationCounts> {
  return countWithin(db, scope, times);
}

async function countWithin(
  db: Reader,
  scope: Scope | undefined,
  { now, until }: CountTimes,
): Promise<InstallationCounts> {
  const builder = builderOf(db);
  const organizationId = scope?.organizationId ?? "";
  const work = builder
    .selectFrom("work")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select((eb) => ["kind as of", eb("leased_by", "is not", null).as("isLeased")])
    .select(({ fn }) => [fn.countAll<number>().as("count"), fn.min("id").as("oldestId")])
    .groupBy((eb) => ["kind", eb("leased_by", "is not", null)])
    .execute();
  const workflowExecutions = builder
    .selectFrom("workflow_execution")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => ["phase as of", fn.countAll<number>().as("count")])
    .where("finished_at", "is", null)
    .groupBy("phase")
    .execute();
  const agentExecutions = builder
    .selectFrom("agent_execution")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => ["phase as of", fn.countAll<number>().as("count")])
    .where("stopped_at", "is", null)
    .groupBy("phase")
    .execute();
  const environments = builder
    .selectFrom("environment")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => ["phase as of", fn.countAll<number>().as("count")])
    .groupBy("phase")
    .execute();
  const approvals = builder
    .selectFrom("approval")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("phase", "=", ApprovalState.PENDING)
    .execute();
  const eventSubscriptions = builder
    .selectFrom("event_subscription")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => ["state as of", fn.countAll<number>().as("count")])
    .groupBy("state")
    .execute();
  const eventDeliveries = builder
    .selectFrom("event_subscription")
    .innerJoin("event_delivery", "event_delivery.subscription_id", "event_subscription.id")
    .$if(scope !== undefined, (query) =>
      query.where("event_subscription.organization_id", "=", organizationId),
    )
    .select(({ fn }) => ["event_subscription.state as of", fn.countAll<number>().as("count")])
    .select(({ fn }) => fn.min("event_delivery.id").as("oldestId"))
    // Literals, so that the database uses the partial index of them.
    .where((eb) => {
      const states = UNSENT_STATES.map((state) => eb.lit(state));
      return eb("event_delivery.state", "in", states);
    })
    .groupBy("event_subscription.state")
    .execute();
  const runners = builder
    .selectFrom("runner")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    // That row represents members' own runners, and is not a runner itself.
    .where("kind", "!=", RunnerKind.LOCAL_CONFIGURATION)
    .select(({ fn }) => [fn.countAll<number>().as("all"), fn.count<number>("seen_at").as("connected")])
    .select(({ fn }) => fn.min("seen_at").as("oldestSign"))
    .select((eb) =>
      eb.fn
        .sum(eb.case().when("available", "=", 1).then(0).when("seen_at", "is", null).then(0).else(1).end())
        .as("paused"),
    )
    .executeTakeFirst();
  const tokens = builder
    .selectFrom("token")
    .$if(scope !== undefined, (query) => query.where("organization_id", "=", organizationId))
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("kind", "in", ["personal", "service_account"])
    .where("expires_at", ">", now)
    .where("expires_at", "<=", until)
    .where("disabled_at", "is", null)
    .execute();
  // Awaited together, so that no failure becomes an unhandled rejection.
  const [works, executions, agents, places, [waiting], subscriptions, deliveries, runnerCounts, [ending]] =
    await Promise.all([
      work,
      workflowExecutions,
      agentExecutions,
      environments,
      approvals,
      eventSubscriptions,
      eventDeliveries,
      runners,
      tokens,
    ]);
  const { all = 0, connected = 0, paused = 0, oldestSign = null } = runnerCounts ?? {};
  return {
    work: works.map(({ of, isLeased, count, oldestId }) => ({
      of: Number(of),
      isLeased: Boolean(isLeased),
      count: Number(count),
      oldestId: oldestId ?? "",
    })),
    workflowExecutions: counted(executions),
    agentExecutions: counted(agents),
    environments: counted(places),
    openApprovals: Number(waiting?.count ?? 0),
    eventSubscriptions: counted(subscriptions),
    eventDeliveries: deliveriesOf(deliveries),
    runners: {
      connected: Number(connected) - Number(paused),
      paused: Number(paused),
      disconnected: Number(all) - Number(connected),
      oldestSign: oldestSign === null ? undefined : Number(oldestSign),
    },
    endingTokens: Number(ending?.count ?? 0),
  };
}

function deliveriesOf(
  rows: readonly (Counted & { readonly oldestId: string | null })[],
): InstallationCounts["eventDeliveries"] {
  const active = rows.find(({ of }) => Number(of) === EventSubscriptionState.ACTIVE);
  const waiting = Number(active?.count ?? 0);
  const all = counted(rows).reduce((sum, { count }) => sum + count, 0);
  return { waiting, paused: all - waiting, oldestId: active?.oldestId ?? undefined };
}

/** Returns counts as numbers: an engine may return them as texts. */
function counted(rows: readonly Counted[]): Counted[] {
  return rows.map(({ of, count }) => ({ of: Number(of), count: Number(count) }));
}
