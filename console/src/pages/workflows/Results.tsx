import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Icon } from "../../parts/Icon.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { executionState } from "./workflow-state.ts";

/** Results that a row of the list shows. */
const SHOWN = 5;

interface ResultsProps {
  readonly workflowId: string;
  /** Executions of the workflow among those read for all workflows, newest first. */
  readonly known: readonly WorkflowExecution[];
  /** True when `known` has the newest ones: busier workflows may have displaced them. */
  readonly isComplete: boolean;
}

/** Shows the last results of a workflow: the newest in words, earlier ones as icons. */
export function Results({ workflowId, known, isComplete }: ResultsProps) {
  const own = useQuery(
    WorkflowService.method.listWorkflowExecutions,
    { filter: { workflowIds: [workflowId] }, pagination: { pageSize: SHOWN } },
    { enabled: !isComplete },
  );
  const executions = isComplete ? known : own.data?.workflowExecutions;
  if (!executions) return null;
  const [newest, ...earlier] = executions;
  if (!newest) return <span className="dim">Never started</span>;
  const [tone, word] = executionState(newest);
  return (
    <span className="results">
      <Link className="inner-link result" to="/executions/$executionId" params={{ executionId: newest.id }}>
        <State tone={tone} word={word} />
        <Ago at={newest.metadata?.finishedAt ?? newest.metadata?.startedAt} />
      </Link>
      {earlier.slice(0, SHOWN - 1).map((execution) => {
        const [tone, word] = executionState(execution);
        return (
          <Link
            key={execution.id}
            className={`inner-link result-earlier tone-${tone} extra`}
            to="/executions/$executionId"
            params={{ executionId: execution.id }}
            aria-label={`Earlier execution: ${word}`}
            title={word}
          >
            <Icon name={tone} size={14} />
          </Link>
        );
      })}
    </span>
  );
}
