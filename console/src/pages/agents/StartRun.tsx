import { useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { AgentMode } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { keepTyped, useKeptText } from "../../api/typed.ts";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ProjectName, ProjectPicker } from "../../parts/pickers/ProjectPicker.tsx";
import { useAgents } from "../../parts/pickers/use-agents.ts";
import { MODES } from "./run-state.ts";

/** Names under which the tab keeps what is typed until the run starts. */
const [MESSAGE_NAME, URL_NAME, RUN_NAME] = ["first message", "first URL", "name of the run"];

/** Starts a run: the agent, the code that it works on, and the first message. */
export function StartRun() {
  const navigate = useNavigate();
  const agents = useAgents();
  const [agentId, setAgentId] = useState("");
  const all = agents.data ?? [];
  // Without a default agent, the list shows the first.
  const chosenId = agentId || (all.some((agent) => agent.default) ? "" : (all[0]?.id ?? ""));
  const [projectId, setProjectId] = useState("");
  const [url, setUrl] = useKeptText(URL_NAME);
  const [name, setName] = useKeptText(RUN_NAME);
  const [message, setMessage] = useKeptText(MESSAGE_NAME);
  const [mode, setMode] = useState(String(AgentMode.EXECUTION));
  const start = useMutation(AgentService.method.startAgent, {
    onSuccess({ agentExecutionId }) {
      for (const name of [MESSAGE_NAME, URL_NAME, RUN_NAME]) keepTyped(name, "");
      void navigate({ to: "/agents/$runId", params: { runId: agentExecutionId } });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const context = projectId
      ? { context: { case: "projectId" as const, value: projectId } }
      : url
        ? { context: { case: "contextUrl" as const, value: { url } } }
        : undefined;
    start.mutate({
      agentId: chosenId,
      name,
      mode: Number(mode) as AgentMode,
      ...(context && { codeContext: context }),
      ...(message.trim() && {
        userInput: { inputs: [{ input: { case: "text", value: { content: message } } }] },
      }),
    });
  };
  return (
    <Loaded reading={agents}>
      {(agents) =>
        agents.length === 0 ? (
          <Empty title="No agents are registered yet.">
            <p>
              The operator of the server can register one: <code>npx chartroom agent add</code>, see
              docs/agents.md.
            </p>
          </Empty>
        ) : (
          <form className="stack" onSubmit={submit}>
            <Problem error={start.error} />
            <NativeSelect
              label="Agent"
              value={chosenId}
              onChange={(event) => setAgentId(event.currentTarget.value)}
              data={[
                ...(agents.some((agent) => agent.default) ? [{ value: "", label: "Default" }] : []),
                ...agents.map(({ id, name }) => ({ value: id, label: name })),
              ]}
            />
            {projectId === "" ? (
              <>
                <ProjectPicker label="Project" verb="Choose" onChoose={({ id }) => setProjectId(id)} />
                <TextInput
                  label="Or a URL of a repository, branch, issue or pull request"
                  value={url}
                  maxLength={2048}
                  onChange={(event) => setUrl(event.currentTarget.value)}
                />
              </>
            ) : (
              <p className="row">
                <span>
                  The project <ProjectName id={projectId} />
                </span>
                <Button variant="default" size="compact-xs" onClick={() => setProjectId("")}>
                  Choose another
                </Button>
              </p>
            )}
            <Textarea
              label="First message"
              autosize
              minRows={3}
              maxRows={12}
              value={message}
              onChange={(event) => setMessage(event.currentTarget.value)}
              onKeyDown={({ key, ctrlKey, metaKey, currentTarget }) => {
                if (key === "Enter" && (ctrlKey || metaKey) && !start.isPending)
                  currentTarget.form?.requestSubmit();
              }}
            />
            <NativeSelect
              label="Mode"
              // Below the field, where it is never truncated.
              description={MODES.find(([value]) => String(value) === mode)?.[2]}
              inputWrapperOrder={["label", "input", "description"]}
              value={mode}
              onChange={(event) => setMode(event.currentTarget.value)}
              data={MODES.map(([value, label]) => ({ value: String(value), label }))}
            />
            <TextInput
              label="Name"
              value={name}
              maxLength={100}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <div className="row">
              <Button type="submit" loading={start.isPending}>
                Start agent
              </Button>
            </div>
          </form>
        )
      }
    </Loaded>
  );
}
