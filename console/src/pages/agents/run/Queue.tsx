import type { MessageInitShape } from "@bufbuild/protobuf";
import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { type DragEvent, useState } from "react";
import type { AgentControlInputSchema, AgentInput } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { failureOf } from "../../../api/failure.ts";
import { Icon } from "../../../parts/Icon.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { saidText } from "./Block.tsx";
import { refreshInputs } from "./use-run.ts";

interface QueueProps {
  readonly runId: string;
  readonly queue: readonly AgentInput[];
  /**
   * The revision of the queue that is shown: the server rejects a change of another revision, so that nobody moves
   * what they do not see.
   */
  readonly revision: bigint;
}

type Order = NonNullable<MessageInitShape<typeof AgentControlInputSchema>["control"]>;

/** Shows the messages that wait for the agent. Each can be delivered now, dragged or moved up, and removed. */
export function Queue({ runId, queue, revision }: QueueProps) {
  const [dragged, setDragged] = useState<string>();
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
  const move = (userInputId: string, beforeUserInputId: string) =>
    order({ case: "moveQueuedMessage", value: { userInputId, beforeUserInputId } });
  const drop = (event: DragEvent, before: string) => {
    event.preventDefault();
    if (dragged !== undefined && dragged !== before && !send.isPending) move(dragged, before);
    setDragged(undefined);
  };
  const isChanged = failureOf(send.error).reason === ErrorReason.QUEUE_CHANGED;
  return (
    <section className="queue" aria-label="Queue">
      {isChanged ? (
        <p className="bar bar-asks" role="alert">
          The queue changed before your action: someone edited it, or a message was delivered. Nothing was
          done. This is the current queue.
        </p>
      ) : (
        <Problem error={send.error} />
      )}
      {queue.map((input, at) => {
        const isMovable = input.input.case === "userInput";
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: the button "Move up" does the same by keyboard
          <div
            key={input.id}
            className="queued"
            draggable={isMovable}
            data-dragged={dragged === input.id || undefined}
            onDragStart={(event) => {
              event.dataTransfer.setData("text/plain", saidText(input));
              setDragged(input.id);
            }}
            onDragEnd={() => setDragged(undefined)}
            onDragOver={(event) => {
              if (dragged !== undefined && isMovable) event.preventDefault();
            }}
            onDrop={(event) => drop(event, input.id)}
          >
            <span className="dim small figures queued-place">
              {isMovable && <Icon name="drag" size={14} />}
              {at + 1}
            </span>
            <span className="cut">{saidText(input)}</span>
            {isMovable && (
              <span className="row">
                {at > 0 && (
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    disabled={send.isPending}
                    onClick={() => move(input.id, queue[at - 1]?.id ?? "")}
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
        );
      })}
    </section>
  );
}
