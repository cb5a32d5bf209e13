import { EnvironmentConnection_Refusal } from "#gen/service/v1/environment_connection_pb.js";
import { EventDeliveryVerdict } from "#gen/service/v1/event_subscription_pb.js";
import { TriggerVerdict } from "#gen/service/v1/workflow_pb.js";
import type { Outcome, StoreMeasures } from "../domain/measures.ts";
import type { Metric } from "./metric.ts";

/** A counter of outcomes. */
interface OutcomeCounter {
  readonly of: Outcome["of"];
  readonly name: string;
  readonly help: string;
  readonly unit?: string;
  readonly label: string;
  /** All values of the label. */
  readonly values: readonly string[];
}

/** Returns the names of an enum's values in lower case, without that of the value 0. */
const namesOf = (values: Readonly<Record<number, string>>): readonly string[] =>
  Object.entries(values)
    .filter(([key]) => Number(key) > 0)
    .map(([, name]) => name.toLowerCase());

const COUNTERS: readonly OutcomeCounter[] = [
  {
    of: "action",
    name: "chartroom.actions.ended",
    help: "Actions that ended, by how.",
    label: "chartroom.end",
    values: ["done", "failed", "stopped"],
  },
  {
    of: "workflow execution",
    name: "chartroom.executions.ended",
    help: "Workflow executions that ended, by how.",
    label: "chartroom.end",
    values: ["done", "failed", "stopped"],
  },
  {
    of: "agent execution",
    name: "chartroom.agent_executions.ended",
    help: "Agent executions that ended, by how.",
    label: "chartroom.end",
    values: ["stopped", "failed"],
  },
  {
    of: "trigger event",
    name: "chartroom.trigger.events",
    help: "Entries of the trigger ledger, by their verdict.",
    unit: "{event}",
    label: "chartroom.verdict",
    values: namesOf(TriggerVerdict),
  },
  {
    of: "event delivery",
    name: "chartroom.event.deliveries",
    help: "Attempts to send an event to a subscription, by their verdict.",
    label: "chartroom.verdict",
    values: namesOf(EventDeliveryVerdict),
  },
  {
    of: "isolation refusal",
    name: "chartroom.isolation.refusals",
    help: "Connections that isolated work was refused, by why.",
    label: "chartroom.reason",
    values: namesOf(EnvironmentConnection_Refusal),
  },
];

/**
 * Returns how often each outcome occurred, 0 for those that never did: in a counter that appears with its first value,
 * Prometheus sees no increase.
 */
export const outcomeMetrics = (measures: Pick<StoreMeasures, "outcomes">): readonly Metric[] =>
  COUNTERS.map(({ of, name, help, unit = "{item}", label, values }) => {
    const counts = new Map([...values.map((value) => [value, 0] as const), ...measures.outcomes(of)]);
    return {
      name,
      help: `${help} Counted by the process that wrote it.`,
      unit,
      kind: "counter",
      values: [...counts].map(([value, count]) => [{ [label]: value }, count]),
    };
  });
