import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type KeyboardEvent, useEffect, useState } from "react";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Problem } from "../../../parts/Problem.tsx";
import { refreshInputs } from "./use-run.ts";

interface ComposerProps {
  readonly runId: string;
  /** A stopped run is resumed by the next message. */
  readonly isStopped: boolean;
}

/** Where what was typed stays until it is sent, so that a reload or an expired session loses none of it. */
const draftKey = (runId: string) => `draft ${runId}`;

/** The field for what to say to the agent; it is always there. */
export function Composer({ runId, isStopped }: ComposerProps) {
  const navigate = useNavigate();
  const [text, setText] = useState(() => sessionStorage.getItem(draftKey(runId)) ?? "");
  useEffect(() => {
    try {
      if (text === "") sessionStorage.removeItem(draftKey(runId));
      else sessionStorage.setItem(draftKey(runId), text);
    } catch {
      // Too long for the storage: it stays in the field.
    }
  }, [runId, text]);
  const send = useMutation(AgentService.method.sendToAgentExecution, {
    onSuccess: () => setText(""),
    onSettled: () => refreshInputs(runId),
  });
  const resume = useMutation(AgentService.method.startAgent, {
    onSuccess({ agentExecutionId }) {
      setText("");
      void navigate({ to: "/agents/$runId", params: { runId: agentExecutionId } });
    },
  });
  const isBusy = send.isPending || resume.isPending;
  const submit = () => {
    if (text.trim() === "" || isBusy) return;
    const userInput = { inputs: [{ input: { case: "text" as const, value: { content: text } } }] };
    if (isStopped) resume.mutate({ resumeFrom: runId, userInput });
    else send.mutate({ agentExecutionId: runId, input: { case: "userInput", value: userInput } });
  };
  return (
    <form
      className="composer"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        submit();
      }}
    >
      <Problem error={send.error ?? resume.error} />
      <Textarea
        aria-label="Message to the agent"
        placeholder={isStopped ? "Resume the run with a message" : "Message to the agent"}
        autosize
        minRows={2}
        maxRows={12}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      <div className="row composer-foot">
        <span className="dim small">Ctrl Enter sends it.</span>
        <Button type="submit" size="xs" loading={isBusy} disabled={text.trim() === ""}>
          {isStopped ? "Resume" : "Send"}
        </Button>
      </div>
    </form>
  );
}
