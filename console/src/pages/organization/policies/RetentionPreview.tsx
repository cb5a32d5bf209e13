import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import {
  OrganizationService,
  type PreviewRetentionResponse_Kind,
} from "#gen/service/v1/organization_service_pb.js";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { wordsOf } from "../words.ts";
import { KINDS } from "./PolicyEffects.tsx";

/** Shows what retention removes under the stored policies: kinds, amounts, and bytes. */
export function RetentionPreview({ organizationId }: { readonly organizationId: string }) {
  // Runs only on a click, since it reads thousands of rows.
  const preview = useMutation(OrganizationService.method.previewRetention);
  return (
    <Section title="What retention removes now">
      <div className="stack">
        <p className="dim lead">
          Once an hour, the server permanently removes data past its retention. Data that is still needed
          stays, such as an execution with an open approval.
        </p>
        <div className="row">
          <Button
            size="xs"
            variant="default"
            loading={preview.isPending}
            onClick={() => preview.mutate({ organizationId })}
          >
            Count
          </Button>
          <span className="dim" role="status">
            {preview.isPending && "Counting. Nothing is removed."}
            {preview.isSuccess && "Counted. Nothing was removed."}
          </span>
          {preview.isSuccess && (
            <span className="dim small">
              Asked <Ago at={timestampFromMs(preview.submittedAt)} />
            </span>
          )}
        </div>
        <Problem error={preview.error} />
        {preview.data && (
          <>
            {!preview.data.complete && (
              <p>
                <State tone="asks" word="The count is incomplete." /> More than 20,000 of one kind are past
                their retention. Only the oldest 20,000 were examined, so these numbers are too small.
              </p>
            )}
            <DataTable
              label="What retention removes now"
              rows={preview.data.kinds}
              keyOf={({ resourceType }) => resourceType}
              columns={[
                {
                  head: "Kind",
                  cell: ({ resourceType }) => wordsOf(KINDS[resourceType]?.[1] ?? resourceType),
                },
                { head: "Kept", cell: keptText },
                {
                  head: "Set by",
                  cell: ({ setByPolicy }) => (setByPolicy ? "this policy" : "the installation’s settings"),
                  isExtra: true,
                },
                { head: "To be removed", cell: ({ count }) => count.toLocaleString("en"), isNumeric: true },
                { head: "Bytes", cell: ({ bytes }) => bytes.toLocaleString("en"), isNumeric: true },
              ]}
            />
          </>
        )}
      </div>
    </Section>
  );
}

/** Kinds whose limit is a count per workflow instead of per organization. */
const OF_WORKFLOWS: ReadonlySet<string> = new Set(["workflow_execution", "trigger_event"]);

function keptText({ resourceType, kept }: PreviewRetentionResponse_Kind): string {
  const { days = 0, count = 0 } = kept ?? {};
  const of = OF_WORKFLOWS.has(resourceType) ? " of each workflow" : "";
  const bounds = [
    ...(days > 0 ? [days === 1 ? "1 day" : `${days.toLocaleString("en")} days`] : []),
    ...(count > 0 ? [`the newest ${count.toLocaleString("en")}${of}`] : []),
  ];
  return bounds.length === 0 ? "forever" : bounds.join(", and of those ");
}
