import { create, equals } from "@bufbuild/protobuf";
import { useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { type Agent, AgentDefinitionSchema, AgentKind } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ChangedMeanwhile } from "../../../parts/fields/Edited.tsx";
import { Problem } from "../../../parts/Problem.tsx";

const KINDS = [
  { value: String(AgentKind.ACP), label: "Agent Client Protocol" },
  { value: String(AgentKind.TEXT), label: "Plain text" },
  { value: String(AgentKind.JSON_LINES), label: "JSON lines" },
];

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

/** Parses variables from lines such as NAME=value. */
const variablesIn = (text: string) =>
  Object.fromEntries(
    lines(text).map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=")];
    }),
  );

const isSameAgent = (one: Agent, other: Agent): boolean =>
  one.name === other.name &&
  one.description === other.description &&
  one.takesSettings === other.takesSettings &&
  equals(
    AgentDefinitionSchema,
    one.definition ?? create(AgentDefinitionSchema),
    other.definition ?? create(AgentDefinitionSchema),
  );

/** The form to create or change an agent that administrators define. */
export function AgentForm({
  agent: stored,
  onDone,
}: {
  /** Undefined for a new one. */
  readonly agent: Agent | undefined;
  readonly onDone: () => void;
}) {
  // A notice shows what others save while the form is open; it must not count as typed here.
  const [agent] = useState(stored);
  const before = agent?.definition;
  const [name, setName] = useState(agent?.name ?? "");
  const [description, setDescription] = useState(agent?.description ?? "");
  const [kind, setKind] = useState(before?.kind ?? AgentKind.ACP);
  const [command, setCommand] = useState(before?.command ?? "");
  const wordsBefore = before?.arguments.join("\n") ?? "";
  const [words, setWords] = useState(wordsBefore);
  const variablesBefore = Object.entries(before?.variables ?? {})
    .map(([variable, value]) => `${variable}=${value}`)
    .join("\n");
  const [variables, setVariables] = useState(variablesBefore);
  const [takesSettings, setTakesSettings] = useState(agent?.takesSettings ?? false);
  const add = useMutation(AgentService.method.createAgent, { onSuccess: onDone });
  const change = useMutation(AgentService.method.updateAgent, { onSuccess: onDone });
  const save = (event: FormEvent) => {
    event.preventDefault();
    const definition = create(AgentDefinitionSchema, {
      kind,
      command,
      // Lines cannot express every value, such as an argument of several lines: unchanged fields keep the stored
      // value.
      arguments: before && words === wordsBefore ? before.arguments : lines(words),
      variables: before && variables === variablesBefore ? before.variables : variablesIn(variables),
    });
    if (agent) {
      change.mutate({
        agentId: agent.id,
        ...(name !== agent.name && { name }),
        ...(description !== agent.description && { description }),
        ...(takesSettings !== agent.takesSettings && { takesSettings }),
        ...(!(before && equals(AgentDefinitionSchema, before, definition)) && { definition }),
      });
    } else add.mutate({ name, description, takesSettings, definition });
  };
  return (
    <form className="stack" onSubmit={save}>
      <Problem error={add.error ?? change.error} />
      {agent && stored && !isSameAgent(agent, stored) && <ChangedMeanwhile what="the agent" />}
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={80}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Description"
        maxLength={500}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <NativeSelect
        label="Protocol"
        data={KINDS}
        value={String(kind)}
        onChange={(event) => setKind(Number(event.currentTarget.value))}
      />
      <TextInput
        label="Program"
        description="A name that the runner can find, or a path. It runs without a shell."
        required
        maxLength={4096}
        classNames={{ input: "mono" }}
        value={command}
        onChange={(event) => setCommand(event.currentTarget.value)}
      />
      <Textarea
        label="Arguments, one per line"
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={words}
        onChange={(event) => setWords(event.currentTarget.value)}
      />
      <Textarea
        label="Environment variables, one NAME=value per line"
        description="Every member can read these. Put secrets on the Secrets tab and mount them as variables."
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={variables}
        onChange={(event) => setVariables(event.currentTarget.value)}
      />
      <Checkbox
        label="Accepts model settings"
        checked={takesSettings}
        onChange={(event) => setTakesSettings(event.currentTarget.checked)}
      />
      <div className="row">
        <Button type="submit" loading={add.isPending || change.isPending}>
          {agent ? "Save agent" : "Define agent"}
        </Button>
      </div>
    </form>
  );
}
