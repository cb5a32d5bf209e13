import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import type { Workflow as WorkflowMessage } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Who } from "../../api/person.tsx";
import { rereadAll } from "../../api/server.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Page, TabLinks } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { Sharing } from "../sharing/Sharing.tsx";
import { DeleteWorkflow } from "./DeleteWorkflow.tsx";
import { EditWorkflow } from "./editor/EditWorkflow.tsx";
import { Ledger } from "./Ledger.tsx";
import { StartWorkflow } from "./StartWorkflow.tsx";
import { Triggers } from "./triggers/Triggers.tsx";
import { WorkflowExecutions } from "./WorkflowExecutions.tsx";
import { workflowState } from "./workflow-state.ts";
import "./workflows.css";

const TABS = [
  ["executions", "Executions"],
  ["definition", "Definition"],
  ["triggers", "Triggers"],
  ["ledger", "Ledger"],
  ["sharing", "Sharing"],
] as const;

/** Shows one workflow: its executions, its content, its triggers, and its ledger. */
export function Workflow() {
  const { workflowId } = useParams({ from: "/workflows/$workflowId" });
  const { tab = "executions" } = useSearch({ from: "/workflows/$workflowId" });
  // The key resets all state when the workflow changes.
  return <WorkflowPage key={workflowId} workflowId={workflowId} tab={tab} />;
}

function WorkflowPage({ workflowId, tab }: { readonly workflowId: string; readonly tab: string }) {
  const reading = useQuery(WorkflowService.method.getWorkflow, { workflowId });
  const workflow = reading.data?.workflow;
  if (!workflow) {
    return (
      <Page title="Workflow">
        <Loaded reading={reading}>{() => null}</Loaded>
      </Page>
    );
  }
  const [tone, word] = workflowState(workflow);
  const { metadata } = workflow;
  return (
    <Page
      title={metadata?.name ?? "Workflow"}
      mark={<State tone={tone} word={word} />}
      facts={
        <>
          {metadata?.description && <span>{metadata.description}</span>}
          <span>
            created by <Who subject={metadata?.creator} />
          </span>
          <span>
            runs as <Who subject={metadata?.executor} />
          </span>
          <span>
            changed <Ago at={metadata?.updatedAt} />
          </span>
        </>
      }
      actions={<Deeds workflow={workflow} />}
    >
      {reading.error && <Problem error={reading.error} onRetry={() => void reading.refetch()} />}
      <TabLinks current={tab} tabs={TABS} />
      {tab === "definition" && <EditWorkflow workflow={workflow} />}
      {tab === "triggers" && <Triggers workflow={workflow} />}
      {tab === "ledger" && <Ledger workflowId={workflowId} />}
      {tab === "sharing" && (
        <Sharing resourceType={ResourceType.WORKFLOW} resourceId={workflowId} use="start it" />
      )}
      {tab === "executions" && <WorkflowExecutions workflowId={workflowId} />}
    </Page>
  );
}

/** The actions of a person on a workflow: starting it, and rarely used ones in the menu. */
function Deeds({ workflow }: { readonly workflow: WorkflowMessage }) {
  const navigate = useNavigate();
  const [isStarting, start] = useDisclosure();
  const [isDeleting, deletion] = useDisclosure();
  const { spec, id: workflowId } = workflow;
  const update = useMutation(WorkflowService.method.updateWorkflow, rereadAll);
  return (
    <>
      <Problem error={update.error} />
      <Button size="xs" disabled={spec?.disabled || spec?.deleting} onClick={start.open}>
        Start workflow
      </Button>
      <Menu width={200}>
        <Menu.Target>
          <Button variant="default" size="xs" px={8} aria-label="More actions for this workflow">
            <Icon name="more" />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => update.mutate({ workflowId, disabled: !spec?.disabled })}>
            {spec?.disabled ? "Enable workflow" : "Disable workflow"}
          </Menu.Item>
          <Menu.Item c="red" onClick={deletion.open}>
            Delete workflow
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isStarting && <StartWorkflow workflow={workflow} onClose={start.close} />}
      {isDeleting && (
        <DeleteWorkflow
          workflow={workflow}
          onClose={deletion.close}
          onDone={() => void navigate({ to: "/workflows" })}
        />
      )}
    </>
  );
}
