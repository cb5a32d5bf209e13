import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { type AgentExecution, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Problem } from "../../../parts/Problem.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { refreshInputs } from "./use-run.ts";

interface LostTurnProps {
  readonly run: AgentExecution;
  /** The revision of the queue that is shown: when two people decide, only one succeeds. */
  readonly revision: bigint;
}

/** Says that a turn was lost with its runner, and lets somebody retry it or continue without it. */
export function LostTurn({ run, revision }: LostTurnProps) {
  const send = useMutation(AgentService.method.sendToAgentExecution, {
    onSettled: () => refreshInputs(run.id),
  });
  const lost = run.status?.lostTurn;
  const phase = run.status?.phase;
  if (!lost || phase === Phase.STOPPED) return null;
  const decide = (decision: "retryTurn" | "goOn") =>
    send.mutate({
      agentExecutionId: run.id,
      expectedQueueRevision: revision,
      input: { case: "controlInput", value: { control: { case: decision, value: {} } } },
    });
  return (
    <section className="bar bar-asks" aria-label="Lost turn">
      <p>
        A turn was lost when its runner disconnected, <Ago at={lost.lostAt} />.{" "}
        {lost.holdsQueue && "Queued messages are not delivered until someone decides. "}
        {phase === Phase.RUNNING && "You can retry it when the current turn has ended."}
      </p>
      <Problem error={send.error} />
      <div className="row">
        <Button
          size="xs"
          disabled={phase === Phase.RUNNING || send.isPending}
          onClick={() => decide("retryTurn")}
        >
          Try again
        </Button>
        <Button variant="default" size="xs" disabled={send.isPending} onClick={() => decide("goOn")}>
          Continue without it
        </Button>
      </div>
    </section>
  );
}
