import { useQuery } from "@connectrpc/connect-query";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import type { WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import { type PreviewWorkflowResponse, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Problem } from "../../parts/Problem.tsx";

/** Milliseconds without a key press before the server is called. */
const TYPED_MS = 250;

/** Names that are shown; further ones are counted. */
const SHOWN = 20;

interface PreviewProps {
  readonly workflowId: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly contextOverride: WorkflowTriggerContext | undefined;
}

/** Shows what a start would do, as the server resolves it, and why it would be rejected. */
export function Preview({ workflowId, parameters, contextOverride }: PreviewProps) {
  const [request] = useDebouncedValue({ workflowId, parameters, contextOverride }, TYPED_MS);
  const { data, error } = useQuery(
    WorkflowService.method.previewWorkflow,
    {
      workflowId: request.workflowId,
      parameters: request.parameters,
      ...(request.contextOverride && { contextOverride: request.contextOverride }),
    },
    {
      enabled: !isUnfilled(request.contextOverride),
      placeholderData: keepPreviousData,
      refetchInterval: false,
      retry: false,
    },
  );
  if (isUnfilled(contextOverride)) return null;
  if (error) return <Problem error={error} />;
  if (!data) return null;
  return (
    <div className="preview" role="status">
      <Sources preview={data} />
      {data.missingParameters.length > 0 && <p>Still needed: {data.missingParameters.join(", ")}.</p>}
      {data.refusal && data.missingParameters.length === 0 && (
        <p className="breach">The start would be refused: {data.refusal.message}</p>
      )}
    </div>
  );
}

function Sources({
  preview: { sources, search, leftOutCount },
}: {
  readonly preview: PreviewWorkflowResponse;
}) {
  if (search) {
    return (
      <p>
        Searches {search.scmHost} for <code>{search.repoSearchString}</code>, and takes the first{" "}
        {search.maxTotal.toLocaleString()} at most.
      </p>
    );
  }
  if (sources.length === 0) return null;
  const names = sources.slice(0, SHOWN).map(({ name }) => name);
  const more = sources.length - names.length;
  return (
    <p>
      {sources.length.toLocaleString()} {sources.length === 1 ? "action" : "actions"}, for {names.join(", ")}
      {more > 0 && ` and ${more.toLocaleString()} more`}.
      {leftOutCount > 0 && ` The limit leaves out ${leftOutCount.toLocaleString()}.`}
    </p>
  );
}

/** Returns whether the context is still empty. */
function isUnfilled(context: WorkflowTriggerContext | undefined): boolean {
  const chosen = context?.context;
  if (chosen?.case === "agent") return chosen.value.prompt === "";
  if (chosen?.case === "projects") return chosen.value.projectIds.length === 0;
  if (chosen?.case !== "repositories") return false;
  const { repositorySelector } = chosen.value;
  if (repositorySelector.case === "repositoryUrls") return repositorySelector.value.repoUrls.length === 0;
  return repositorySelector.value?.scmHost === "" || repositorySelector.value?.repoSearchString === "";
}
