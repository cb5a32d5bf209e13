import type { MessageInitShape } from "@bufbuild/protobuf";
import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea } from "@mantine/core";
import type { FormEvent } from "react";
import {
  type AgentControlInput_GoalSchema,
  type AgentExecution,
  AgentGoalStatus as Status,
} from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { keepTyped, useKeptText } from "../../../api/typed.ts";
import { Dialog } from "../../../parts/Dialog.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State, type Tone } from "../../../parts/State.tsx";

const STATES: Readonly<Record<Status, readonly [Tone, string]>> = {
  [Status.UNSPECIFIED]: ["waiting", "Unknown"],
  [Status.ACTIVE]: ["running", "In progress"],
  [Status.PAUSED]: ["waiting", "Paused"],
  [Status.COMPLETED]: ["done", "Reached"],
  [Status.BUDGET_EXHAUSTED]: ["failed", "Budget exhausted"],
  [Status.BLOCKED]: ["asks", "Needs help"],
  [Status.USAGE_LIMITED]: ["waiting", "Waiting for the model provider"],
};

type Change = NonNullable<MessageInitShape<typeof AgentControlInput_GoalSchema>["action"]>;

interface GoalProps {
  readonly run: AgentExecution;
}

function useGoalChange(runId: string, onSuccess: () => void) {
  const send = useMutation(AgentService.method.sendToAgentExecution, { onSuccess });
  const change = (action: Change) =>
    send.mutate({
      agentExecutionId: runId,
      input: { case: "controlInput", value: { control: { case: "goal", value: { action } } } },
    });
  return { change, error: send.error, isBusy: send.isPending };
}

const nothing = () => {};

/** Shows the goal of a run, and the actions on it. */
export function GoalView({ run }: GoalProps) {
  const { change, error, isBusy } = useGoalChange(run.id, nothing);
  const goal = run.status?.goal;
  if (!goal) return null;
  const [tone, word] = STATES[goal.status];
  const isActive = goal.status === Status.ACTIVE;
  const isReached = goal.status === Status.COMPLETED;
  const act = (label: string, action: Change) => (
    <Button variant="subtle" size="compact-xs" disabled={isBusy} onClick={() => change(action)}>
      {label}
    </Button>
  );
  return (
    <section className="card goal" aria-label="Goal">
      <div className="row">
        <h2>Goal</h2>
        <State tone={tone} word={word} />
        <span className="goal-deeds row">
          {isActive && act("Pause goal", { case: "pause", value: {} })}
          {!isActive && !isReached && act("Resume goal", { case: "resume", value: {} })}
          {!isReached && act("Goal is reached", { case: "complete", value: {} })}
          {act("Remove goal", { case: "clear", value: {} })}
        </span>
      </div>
      <p className="said-text">{goal.objective}</p>
      {goal.tokensUsed > 0n && (
        <p className="dim small figures">
          {goal.tokensUsed.toLocaleString()}
          {goal.tokenBudget !== undefined && ` of ${goal.tokenBudget.toLocaleString()}`} tokens used
        </p>
      )}
      <Problem error={error} />
    </section>
  );
}

/** Gives a run a goal, which replaces an existing one. */
export function SetGoal({ run, onClose }: GoalProps & { readonly onClose: () => void }) {
  const name = `goal ${run.id}`;
  const [objective, setObjective] = useKeptText(name, run.status?.goal?.objective);
  const { change, error, isBusy } = useGoalChange(run.id, () => {
    keepTyped(name, "");
    onClose();
  });
  return (
    <Dialog title="Set goal" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          change({ case: "set", value: { objective } });
        }}
      >
        <Problem error={error} />
        <Textarea
          label="Objective"
          required
          autosize
          minRows={3}
          maxRows={12}
          maxLength={20_000}
          value={objective}
          onChange={(event) => setObjective(event.currentTarget.value)}
        />
        <div className="row">
          <Button type="submit" loading={isBusy}>
            Set goal
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
