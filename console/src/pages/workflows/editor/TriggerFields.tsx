import { create } from "@bufbuild/protobuf";
import { Checkbox } from "@mantine/core";
import {
  WorkflowTrigger_OverlapPolicy as Overlap,
  type WorkflowTrigger,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import { ChoiceField, PartBreach, removed, replaced, TextField } from "../../../parts/fields/fields.tsx";
import { AddButton, MemberButtons } from "../../../parts/fields/ListButtons.tsx";
import { Instants, ZONES } from "../triggers/Instants.tsx";
import { EVENTS, OVERLAPS } from "../workflow-state.ts";
import { ContextFields, emptyContext } from "./ContextFields.tsx";

type Kind = "manual" | "time" | "pullRequest";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["manual", "Manually or by its webhook"],
  ["time", "On a schedule"],
  ["pullRequest", "When a pull request changes"],
];

/** Maximum triggers of a workflow (contract). */
const MAX_TRIGGERS = 10;

interface TriggersFieldsProps {
  readonly triggers: readonly WorkflowTrigger[];
  readonly onChange: (triggers: WorkflowTrigger[]) => void;
}

/** Edits when the workflow starts, and where each start runs. */
export function TriggersFields({ triggers, onChange }: TriggersFieldsProps) {
  return (
    <>
      <PartBreach path="triggers" />
      {triggers.length === 0 && (
        <p className="dim">Without a trigger, it is started manually, with repositories chosen each time.</p>
      )}
      {triggers.map((trigger, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: triggers have no ids, and their fields are all controlled
        <fieldset key={at} className="part">
          <legend className="dim small">Trigger {at + 1}</legend>
          <div className="part-head">
            <ChoiceField
              path={`triggers[${at}].trigger`}
              label="When it starts"
              value={trigger.trigger.case ?? "manual"}
              choices={KINDS}
              onChange={(kind) => onChange(replaced(triggers, at, withKind(trigger, kind)))}
            />
            <MemberButtons what={`trigger ${at + 1}`} onRemove={() => onChange(removed(triggers, at))} />
          </div>
          <TriggerFields
            path={`triggers[${at}]`}
            trigger={trigger}
            onChange={(next) => onChange(replaced(triggers, at, next))}
          />
        </fieldset>
      ))}
      <AddButton
        label="Add trigger"
        disabled={triggers.length >= MAX_TRIGGERS}
        onAdd={() => {
          const manual = create(WorkflowTriggerSchema, {
            trigger: { case: "manual", value: {} },
            context: triggers[0]?.context ?? emptyContext("urls"),
          });
          onChange([...triggers, manual]);
        }}
      />
    </>
  );
}

/** Returns a trigger of another kind. It keeps the context, unless only an event provides that. */
function withKind({ context }: WorkflowTrigger, kind: Kind): WorkflowTrigger {
  const isOfEvent = context?.context.case === "fromTrigger";
  const kept = context && (kind === "pullRequest" || !isOfEvent) ? context : emptyContext("urls");
  return create(WorkflowTriggerSchema, {
    trigger: {
      case: kind,
      value: kind === "time" ? { cronExpression: "0 4 * * 1-5", timeZone: "UTC" } : {},
    } as never,
    context: kind === "pullRequest" ? emptyContext("fromTrigger") : kept,
  });
}

function TriggerFields({
  path,
  trigger,
  onChange,
}: {
  readonly path: string;
  readonly trigger: WorkflowTrigger;
  readonly onChange: (trigger: WorkflowTrigger) => void;
}) {
  const fires = trigger.trigger;
  return (
    <>
      {fires.case === "time" && (
        <>
          <div className="field-row">
            <TextField
              path={`${path}.time.cron_expression`}
              label="Minute, hour, day, month, day of week"
              value={fires.value.cronExpression}
              onChange={(cronExpression) =>
                onChange({ ...trigger, trigger: { ...fires, value: { ...fires.value, cronExpression } } })
              }
            />
            <ChoiceField
              path={`${path}.time.time_zone`}
              label="Time zone"
              value={fires.value.timeZone || "UTC"}
              choices={ZONES.map((zone) => [zone, zone])}
              onChange={(timeZone) =>
                onChange({ ...trigger, trigger: { ...fires, value: { ...fires.value, timeZone } } })
              }
            />
            <ChoiceField
              path={`${path}.time.overlap_policy`}
              label="If the previous execution is still running"
              value={String(fires.value.overlapPolicy || Overlap.ALLOW)}
              choices={OVERLAPS.map(([policy, word]) => [String(policy), word])}
              onChange={(policy) =>
                onChange({
                  ...trigger,
                  trigger: { ...fires, value: { ...fires.value, overlapPolicy: Number(policy) } },
                })
              }
            />
          </div>
          <Instants cron={fires.value.cronExpression} zone={fires.value.timeZone || "UTC"} />
        </>
      )}
      {fires.case === "pullRequest" && (
        <div className="stack">
          <span className="dim small">Events (none selected means all)</span>
          <div className="row">
            {EVENTS.map(([event, word]) => (
              <Checkbox
                key={event}
                size="xs"
                label={word}
                checked={fires.value.events.includes(event)}
                onChange={({ currentTarget: { checked } }) => {
                  const others = fires.value.events.filter((each) => each !== event);
                  const events = checked ? [...others, event].toSorted((a, b) => a - b) : others;
                  onChange({ ...trigger, trigger: { ...fires, value: { ...fires.value, events } } });
                }}
              />
            ))}
          </div>
        </div>
      )}
      <ContextFields
        path={`${path}.context`}
        context={trigger.context ?? emptyContext("urls")}
        isOfEvent={fires.case === "pullRequest"}
        onChange={(context) => onChange({ ...trigger, context })}
      />
    </>
  );
}
