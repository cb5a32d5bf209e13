import {
  type PreviewOrganizationPoliciesResponse_Effect as Effect,
  PreviewOrganizationPoliciesResponse_Outcome as Outcome,
  type PreviewOrganizationPoliciesResponse,
} from "#gen/service/v1/organization_service_pb.js";
import { State } from "../../../parts/State.tsx";

/** The kinds of resources in words, singular and plural. */
export const KINDS: Readonly<Record<string, readonly [one: string, more: string]>> = {
  workflow: ["workflow", "workflows"],
  environment: ["environment", "environments"],
  agent_execution: ["agent run", "agent runs"],
  runner: ["runner", "runners"],
  project: ["project", "projects"],
  workflow_execution: ["workflow execution", "workflow executions"],
  trigger_event: ["entry of a ledger", "entries of ledgers"],
  event: ["event", "events"],
};

/** Shows what a change of policies would do to existing resources. */
export function PolicyEffects({ preview }: { readonly preview: PreviewOrganizationPoliciesResponse }) {
  return (
    <div className="stack" role="status">
      {preview.effects.length === 0 ? (
        <State tone="done" word="Nothing that exists now would be refused, archived, deleted or removed." />
      ) : (
        preview.effects.map((effect) => (
          <div key={[effect.fieldPath, effect.operation, effect.resourceType].join(" ")}>
            <p>
              <strong>{sentenceOf(effect)}</strong>
            </p>
            <p className="dim small">
              {effect.resources.map(({ id, name }) => name || id).join(", ")}
              {effect.resources.length > 0 &&
                effect.count > effect.resources.length &&
                ` and ${effect.count - effect.resources.length} more`}
              {effect.resources.length > 0 && ". "}
              {effect.allowed !== "" && <>The policy would allow {effect.allowed}. </>}
              <code>{effect.fieldPath}</code>
            </p>
          </div>
        ))
      )}
      {!preview.complete && (
        <p className="dim">
          Not everything was examined, so these numbers are too small: only the first thousand of each kind,
          and the oldest 20,000 that retention removes.
        </p>
      )}
    </div>
  );
}

function sentenceOf({ count, resourceType, outcome, operation, bytes }: Effect): string {
  const [one, more] = KINDS[resourceType] ?? [resourceType, resourceType];
  const what = `${count} ${count === 1 ? one : more}`;
  if (outcome === Outcome.ARCHIVED) return `Archives ${what} within a minute`;
  if (outcome === Outcome.DELETED) return `Deletes ${what} within a minute`;
  if (outcome === Outcome.REMOVED)
    return `Permanently removes ${what} within an hour, ${bytes.toLocaleString("en")} bytes`;
  return `Refuses ${operation.split("/")[1] ?? ""} for ${what}`;
}
