import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { WorkflowExecutionPhase as Phase, type Workflow } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { queries } from "../../api/server.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { Problem } from "../../parts/Problem.tsx";

/** Maximum executions that are counted; more are shown as a plus. */
const COUNTED = 100;

interface DeleteWorkflowProps {
  readonly workflow: Workflow;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Asks for confirmation before a workflow is deleted, and shows its running executions. */
export function DeleteWorkflow({ workflow, onClose, onDone }: DeleteWorkflowProps) {
  const [force, setForce] = useState(false);
  const { data } = useQuery(WorkflowService.method.listWorkflowExecutions, {
    filter: {
      workflowIds: [workflow.id],
      statusPhases: [Phase.PENDING, Phase.RUNNING, Phase.STOPPING],
    },
    pagination: { pageSize: COUNTED },
  });
  const remove = useMutation(WorkflowService.method.deleteWorkflow, {
    async onSuccess() {
      await queries.invalidateQueries();
      onDone();
    },
  });
  const count = data?.workflowExecutions.length ?? 0;
  const going = `${count}${data?.pagination?.nextToken ? "+" : ""} ${count === 1 ? "execution" : "executions"}`;
  const [goesOn, haveEnded] = count === 1 ? ["is running", "has ended"] : ["are running", "have ended"];
  return (
    <Dialog title="Delete workflow" onClose={onClose}>
      <div className="stack">
        <Problem error={remove.error} />
        <p>
          Deletes “{workflow.metadata?.name}” with all its executions, their logs and their outputs.{" "}
          {count > 0 && !force && `It is deleted once the ${going} that ${goesOn} ${haveEnded}.`}
          {count > 0 && force && `Cancels ${going} first.`}
        </p>
        {count > 0 && (
          <Checkbox
            label={`Cancel the ${going} that ${goesOn}`}
            checked={force}
            onChange={(event) => setForce(event.currentTarget.checked)}
          />
        )}
        <div className="row">
          <Button
            color="red"
            loading={remove.isPending}
            onClick={() => remove.mutate({ workflowId: workflow.id, force })}
          >
            Delete workflow
          </Button>
          <Button variant="default" onClick={onClose}>
            Leave it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
