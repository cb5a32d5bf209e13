import { CopyButton } from "@mantine/core";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { Empty, Section } from "../../../parts/Page.tsx";
import { contextText, OVERLAPS, triggerText } from "../workflow-state.ts";
import { Instants } from "./Instants.tsx";
import { WebhookSecret } from "./WebhookSecret.tsx";
import { WebhookTester } from "./WebhookTester.tsx";

/**
 * Shows what starts a workflow: its triggers with their next instants, and its webhook with the secret and a tester.
 */
export function Triggers({ workflow }: { readonly workflow: Workflow }) {
  const triggers = workflow.spec?.triggers ?? [];
  return (
    <>
      <Section title="Triggers">
        {triggers.length === 0 && (
          <Empty title="The workflow has no triggers.">
            <p>It is started manually, with repositories chosen each time.</p>
          </Empty>
        )}
        <div className="stack">
          {triggers.map((trigger, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: triggers have no ids; the place is what the ledger names
            <div key={at} className="part">
              <p>
                <span className="dim figures">{at + 1}.</span> <strong>{triggerText(trigger)}</strong>, over{" "}
                {contextText(trigger.context)}
              </p>
              {trigger.trigger.case === "time" && (
                <>
                  <p className="dim small">
                    If the previous execution is still running:{" "}
                    {(OVERLAPS.find(
                      ([policy]) =>
                        trigger.trigger.case === "time" && policy === trigger.trigger.value.overlapPolicy,
                    ) ?? OVERLAPS[0])?.[1].toLowerCase()}
                    .
                  </p>
                  <Instants
                    cron={trigger.trigger.value.cronExpression}
                    zone={trigger.trigger.value.timeZone || "UTC"}
                  />
                </>
              )}
            </div>
          ))}
        </div>
      </Section>
      <Section title="Webhook">
        <div className="stack">
          <div className="row">
            <code className="webhook-url">{workflow.webhookUrl}</code>
            <CopyButton value={workflow.webhookUrl}>
              {({ copied, copy }) => (
                <button type="button" className="link" onClick={copy}>
                  {copied ? "Copied" : "Copy URL"}
                </button>
              )}
            </CopyButton>
          </div>
          <p className="dim">
            A POST to this URL starts the workflow or reports a pull request. Sign it with the secret. The
            page docs/workflows.md describes the signatures and how to set up source-control hosts.
          </p>
          <WebhookSecret workflow={workflow} />
        </div>
      </Section>
      <Section title="Try the webhook">
        <WebhookTester workflowId={workflow.id} />
      </Section>
    </>
  );
}
