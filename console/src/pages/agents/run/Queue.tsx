import type { MessageInitShape } from "@bufbuild/protobuf";
import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import type { AgentControlInputSchema, AgentInput } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Problem } from "../../../parts/Problem.tsx";
import { saidText } from "./Block.tsx";
import { refreshInputs } from "./use-run.ts";

interface QueueProps {
  readonly runId: string;
  readonly queue: readonly AgentInput[];
  /** The state of the queue that is shown: an order about another state is refused, so that nobody moves what they do not see. */
  readonly revision: bigint;
}

type Order = NonNullable<MessageInitShape<typeof AgentControlInputSchema>["control"]>;

/** What waits for the agent: each message can be delivered now, moved up and taken out. */
export function Queue({ runId, queue, revision }: QueueProps) {
  const send = useMutation(AgentService.method.sendToAgentExecution, {
    onSettled: () => refreshInputs(runId),
  });
  if (queue.length === 0 && !send.error) return null;
  const order = (control: Order) =>
    send.mutate({
      agentExecutionId: runId,
      input: { case: "controlInput", value: { control } },
      expectedQueueRevision: revision,
    });
  return (
    <section className="queue" aria-label="Queue">
      <Problem error={send.error} />
      {queue.map((input, at) => (
        <div key={input.id} className="queued">
          <span className="dim small figures">{at + 1}</span>
          <span className="cut">{saidText(input)}</span>
          {input.input.case === "userInput" && (
            <span className="row">
              {at > 0 && (
                <Button
                  variant="subtle"
                  size="compact-xs"
                  disabled={send.isPending}
                  onClick={() =>
                    order({
                      case: "moveQueuedMessage",
                      value: { userInputId: input.id, beforeUserInputId: queue[at - 1]?.id ?? "" },
                    })
                  }
                >
                  Move up
                </Button>
              )}
              <Button
                variant="subtle"
                size="compact-xs"
                disabled={send.isPending}
                onClick={() => order({ case: "steerQueuedMessage", value: { userInputId: input.id } })}
              >
                Deliver now
              </Button>
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                disabled={send.isPending}
                onClick={() => order({ case: "deleteQueuedMessage", value: { userInputId: input.id } })}
              >
                Delete
              </Button>
            </span>
          )}
        </div>
      ))}
    </section>
  );
}
