import { timestampMs } from "@bufbuild/protobuf/wkt";
import { memo } from "react";
import {
  type AgentInput,
  type AgentOutputBlock,
  type AgentOutputBlock_ToolCall,
  AgentOutputBlock_ToolCall_Kind as Kind,
  AgentOutputBlock_Question_State as QuestionState,
  AgentOutputBlock_ToolCall_State as State,
} from "#gen/service/v1/agent_pb.js";
import { Who } from "../../../api/person.tsx";
import { Details } from "../../../parts/Details.tsx";
import { Diff } from "../../../parts/diff/Diff.tsx";
import { Icon, type IconName } from "../../../parts/Icon.tsx";
import { Markdown } from "../../../parts/Markdown.tsx";
import { State as StateMark, type Tone } from "../../../parts/State.tsx";
import { Ago, Lasting } from "../../../parts/Time.tsx";
import { addressOf, IMAGE_TYPES } from "./images.ts";

const ICONS: Readonly<Partial<Record<Kind, IconName>>> = {
  [Kind.READ]: "read",
  [Kind.EDIT]: "edit",
  [Kind.DELETE]: "remove",
  [Kind.MOVE]: "right",
  [Kind.SEARCH]: "search",
  [Kind.EXECUTE]: "execute",
  [Kind.FETCH]: "fetch",
  [Kind.THINK]: "think",
};

const STATES: Readonly<Record<State, readonly [Tone, string]>> = {
  [State.UNSPECIFIED]: ["waiting", ""],
  [State.PENDING]: ["waiting", "Pending"],
  [State.WAITING_FOR_APPROVAL]: ["asks", "Waiting for approval"],
  [State.RUNNING]: ["running", "Running"],
  [State.DONE]: ["done", "Done"],
  [State.FAILED]: ["failed", "Failed"],
};

const ANSWERS: Readonly<Record<QuestionState, readonly [Tone, string]>> = {
  [QuestionState.UNSPECIFIED]: ["waiting", "Asked"],
  [QuestionState.OPEN]: ["asks", "Waiting for an answer"],
  [QuestionState.ANSWERED]: ["done", "Answered"],
  [QuestionState.DECLINED]: ["stopped", "Declined"],
};

/** Shows a message to the agent. */
export function Said({ input }: { readonly input: AgentInput }) {
  return (
    <div className="said">
      <div className="row small dim">
        <strong>
          <Who subject={input.sender} />
        </strong>
        <Ago at={input.createdAt} />
      </div>
      <div className="said-text">{saidText(input)}</div>
      <SaidImages input={input} />
    </div>
  );
}

/**
 * Shows the images of a message, as far as the server has them: runners move them out of the message. Memoized,
 * because rendering an address of megabytes for each word that an agent writes is too slow.
 */
const SaidImages = memo(function SaidImages({ input: { input } }: { readonly input: AgentInput }) {
  if (input.case !== "userInput") return null;
  return input.value.inputs.map(({ input: part }, at) =>
    part.case === "image" && part.value.data.length > 0 && IMAGE_TYPES.includes(part.value.mimeType) ? (
      <img
        // biome-ignore lint/suspicious/noArrayIndexKey: a message never changes its parts
        key={at}
        src={addressOf(part.value.mimeType, part.value.data)}
        alt={`Part ${at + 1} of the message`}
      />
    ) : null,
  );
});

/** Returns the text of an input; a description when it has no text. */
export function saidText({ input }: AgentInput): string {
  if (input.case === "userInput") {
    const { inputs } = input.value;
    return inputs
      .map(({ input: part }) => {
        if (part.case === "text") return part.value.content;
        if (part.case === "image") return "[an image]";
        if (part.case === "review") {
          const { summary, comments } = part.value;
          const lines = comments.map(({ path, firstLine, text }) => `${path}:${firstLine} ${text}`);
          return [summary || "A review", ...lines].join("\n");
        }
        return "";
      })
      .join("\n");
  }
  if (input.case === "agentMessage") return input.value.payload;
  if (input.case === "controlInput") return `Control: ${input.value.control.case ?? ""}`;
  if (input.case === "wakeEvent") return `Woken by: ${input.value.payload.case ?? ""}`;
  return "";
}

interface BlockProps {
  readonly block: AgentOutputBlock;
  /** True after the run has ended: nothing runs then, whatever the agent reported last. */
  readonly isStopped: boolean;
}

/** Returns whether a block is a tool call that is running or waits for permission. */
export const isRunning = ({ block }: AgentOutputBlock): boolean =>
  block.case === "toolCall" &&
  (block.value.state === State.RUNNING || block.value.state === State.WAITING_FOR_APPROVAL);

/** Shows one block of an agent's output. */
export function Block({ block: whole, isStopped }: BlockProps) {
  const { block } = whole;
  switch (block.case) {
    case "text":
      return <Markdown text={block.value.content} />;
    case "thought":
      return (
        <Details
          className="step"
          summary={
            <>
              <Icon name="think" />
              <span className="cut">Thought</span>
            </>
          }
        >
          <div className="step-body dim">
            <Markdown text={block.value.content} />
          </div>
        </Details>
      );
    case "error":
      return (
        <div className="problem" role="note">
          <div className="problem-text">
            <Icon name="failed" />
            <p>{block.value.message}</p>
          </div>
        </div>
      );
    case "fileChange":
      return (
        <Details
          className="step"
          summary={
            <>
              <Icon name="edit" />
              <code className="cut">{block.value.path}</code>
            </>
          }
        >
          <div className="step-body">
            <Diff text={block.value.diff} path={block.value.path} />
          </div>
        </Details>
      );
    case "toolRequest":
      return (
        <Details
          className="step"
          summary={
            <>
              <Icon name="tool" />
              <span className="cut">{block.value.name}</span>
            </>
          }
        >
          <pre className="code step-body">{block.value.arguments}</pre>
        </Details>
      );
    case "toolCall":
      return <ToolCall call={block.value} block={whole} isStopped={isStopped} />;
    case "question": {
      const [tone, word] = ANSWERS[block.value.state];
      return (
        <div className="step-question">
          <StateMark tone={tone} word={word} />
          <Markdown text={block.value.message} />
        </div>
      );
    }
    default:
      return null;
  }
}

/** Shows the state and duration of a tool call, and its name when other calls are shown next to it. */
export function StepState({
  block: { block, startedAt, endedAt },
  isStopped,
  isNamed = false,
}: BlockProps & { readonly isNamed?: boolean }) {
  if (block.case !== "toolCall") return null;
  const [tone, word] = STATES[block.value.state];
  const isQuick = startedAt && endedAt && timestampMs(endedAt) - timestampMs(startedAt) < 1000;
  return (
    <>
      {isNamed && <span className="cut">{block.value.title}</span>}
      <span className="step-state small">
        {startedAt && (endedAt || !isStopped) && (
          <span className="dim figures">{isQuick ? "< 1 s" : <Lasting from={startedAt} to={endedAt} />}</span>
        )}
        {word !== "" && <StateMark tone={tone} word={word} />}
      </span>
    </>
  );
}

function ToolCall({ call, block, isStopped }: BlockProps & { readonly call: AgentOutputBlock_ToolCall }) {
  return (
    <Details
      className="step"
      summary={
        <>
          <Icon name={ICONS[call.kind] ?? "tool"} />
          <span className="cut">{call.title || "Tool call"}</span>
          <StepState block={block} isStopped={isStopped} />
        </>
      }
    >
      <div className="step-body stack">
        {call.locations.map(({ path, line }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an agent may name a place twice
          <code key={at} className="block">
            {path}
            {line > 0 && `:${line}`}
          </code>
        ))}
        {call.input && <pre className="code">{call.input}</pre>}
        {call.diffs.map(({ path, diff }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an agent may change a file twice in a call
          <div key={at}>
            <code className="block">{path}</code>
            <Diff text={diff} path={path} />
          </div>
        ))}
        {call.result && <pre className="code">{call.result}</pre>}
      </div>
    </Details>
  );
}
