import {
  type AgentControlInput,
  type AgentExecution,
  AgentGoalStatus,
  type AgentInput,
  AgentInputReceipt,
  type AgentOutputBlock,
  type AgentOutputBlock_ToolCall,
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentExecution_Phase as Phase,
  AgentOutputBlock_Question_State as QuestionState,
  AgentOutputBlock_Plan_State as StepState,
  AgentOutputBlock_ToolCall_State as ToolState,
  type UserInputBlock_Input,
} from "#gen/service/v1/agent_pb.js";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { printable } from "../client/printable.ts";

/** Maximum characters to show of a tool's arguments, or of a message in a list. */
const MAX_SHOWN_CHARACTERS = 200;

const PHASES: Readonly<Partial<Record<Phase, string>>> = {
  [Phase.PENDING]: "waits for its environment or a runner",
  [Phase.RUNNING]: "works",
  [Phase.WAITING_FOR_INPUT]: "waits for input",
  [Phase.STOPPED]: "has stopped",
};

/** Shows an agent's execution live, in whole lines for a terminal. */
export class ChatView {
  readonly showsStateLast = true;
  readonly #print: (text: string) => void;
  readonly #lostTurnOrders: (run: string) => string;
  /** Titles of unfinished tool calls, by id. */
  readonly #titles = new Map<string, string>();
  /** Ids of the messages whose text was printed. */
  readonly #shownInputIds = new Set<string>();
  #shownInputId = "";
  #shownStatus = "";
  /** The text of the current, unfinished line. */
  #begun = "";

  /**
   * @param print receives whole lines
   * @param lostTurnOrders returns the commands that decide about a run's lost turn
   */
  constructor(print: (text: string) => void, lostTurnOrders = lostTurnCommands) {
    this.#print = print;
    this.#lostTurnOrders = lostTurnOrders;
  }

  /** Prints a line of the chat itself. */
  note(text: string): void {
    this.#line(text);
  }

  /**
   * Prints a block under the message that it answers.
   * @param messageOf returns the text of a message; undefined when it is unknown
   */
  block({ inputId, block }: AgentOutputBlock, messageOf: (inputId: string) => string | undefined): void {
    if (inputId !== this.#shownInputId) {
      this.#shownInputId = inputId;
      this.#shownInputIds.add(inputId);
      // Print the status again after the answer to this message.
      this.#shownStatus = "";
      const message = messageOf(inputId);
      this.#line(`-- ${message === undefined ? inputId : firstLine(message)}`);
    }
    switch (block.case) {
      case "text":
        this.#words(block.value.content);
        break;
      case "fileChange":
        this.#line(`${FileChangeKind[block.value.kind].toLowerCase()} ${block.value.path}`);
        if (block.value.diff !== "") this.#line(block.value.diff.trimEnd());
        break;
      case "toolRequest":
        this.#line(`tool ${block.value.name} ${firstLine(block.value.arguments)}`);
        break;
      case "error":
        this.#line(`error: ${block.value.message}`);
        break;
      case "toolCall":
        this.#toolCall(block.value);
        break;
      case "plan":
        for (const { content, state } of block.value.entries)
          this.#line(`plan ${StepState[state].toLowerCase()}: ${firstLine(content)}`);
        break;
      case "thought":
        this.#line(`thinks: ${firstLine(block.value.content)}`);
        break;
      case "question":
        if (block.value.state === QuestionState.OPEN) this.#line(`asks: ${block.value.message}`);
        break;
    }
  }

  /** Prints the text of a message, unless it was already printed with its answer. */
  sent(input: AgentInput): void {
    if (this.#shownInputIds.has(input.id)) return;
    this.#shownInputIds.add(input.id);
    this.#shownInputId = input.id;
    this.#line(`-- ${firstLine(wordsOf(input))}`);
  }

  #toolCall({ id, title, state, diffs }: AgentOutputBlock_ToolCall): void {
    // Later blocks of a call omit unchanged fields.
    if (title !== "") this.#titles.set(id, title);
    const shown = firstLine(this.#titles.get(id) ?? id);
    this.#line(`tool ${shown} ${ToolState[state].toLowerCase().replaceAll("_", " ")}`);
    for (const { diff } of diffs) this.#line(diff.trimEnd());
    if (state === ToolState.DONE || state === ToolState.FAILED) this.#titles.delete(id);
  }

  /** Prints the phase of the execution if it has changed. */
  run({ id, status }: AgentExecution): void {
    if (!status) return;
    const { phase, goal, failureMessage, waitingInfo, pendingApprovalIds, lostTurn } = status;
    const parts = [
      `the run ${PHASES[phase] ?? ""}`,
      failureMessage && `it failed: ${failureMessage}`,
      pendingApprovalIds.length > 0 && `it waits for approval ${pendingApprovalIds.join(", ")}`,
      lostTurn?.holdsQueue &&
        `a turn was lost: nothing goes on until somebody asks for it again or goes on without it: ${this.#lostTurnOrders(id)}`,
      waitingInfo && `it will be woken by ${waitingInfo.interests.map(({ id }) => id).join(", ")}`,
      goal && `its goal is ${AgentGoalStatus[goal.status].toLowerCase()}`,
    ];
    const shown = parts.filter(Boolean).join("; ");
    if (shown === this.#shownStatus) return;
    this.#shownStatus = shown;
    this.#line(`[${shown}]`);
  }

  /** Prints inputs in the given order. */
  inputs(inputs: readonly AgentInput[], none: string): void {
    if (inputs.length === 0) this.#line(none);
    for (const input of inputs) {
      const receipt = AgentInputReceipt[input.receipt].toLowerCase().padEnd(9);
      this.#line(`${receipt}  ${input.id}  ${firstLine(wordsOf(input))}`);
    }
  }

  /** Ends the current line, if there is one. */
  endLine(): void {
    if (this.#begun !== "") this.#words("\n");
  }

  #line(text: string): void {
    this.endLine();
    this.#words(`${text}\n`);
  }

  #words(text: string): void {
    const all = this.#begun + text;
    const end = all.lastIndexOf("\n") + 1;
    this.#begun = all.slice(end);
    if (end > 0) this.#print(printable(all.slice(0, end)));
  }
}

/** Returns the commands that decide about a run's lost turn. */
function lostTurnCommands(run: string): string {
  return `chartroom run retry-turn ${run}, or chartroom run go-on ${run}`;
}

/** Returns whether an input has a review. */
export function isReview({ input }: AgentInput): boolean {
  return input.case === "userInput" && input.value.inputs.some((part) => part.input.case === "review");
}

/** Returns the text that identifies an input. */
export function wordsOf({ input }: AgentInput): string {
  switch (input.case) {
    case "userInput": {
      const { inputs, input: only } = input.value;
      const parts = only.case === undefined ? inputs.map((part) => part.input) : [only];
      return parts.map(partWords).join(" ");
    }
    case "agentMessage":
      return `(from the run ${input.value.senderExecutionId}) ${input.value.payload}`;
    case "wakeEvent":
      return `(woken by ${input.value.interestId})`;
    case "controlInput":
      return `(${orderOf(input.value)})`;
    case "approval":
      return `(${ApprovalState[input.value.state]?.toLowerCase() ?? ""}: ${input.value.toolCallId})`;
    default:
      return "";
  }
}

function partWords(part: UserInputBlock_Input["input"]): string {
  if (part.case === "text") return part.value.content;
  if (part.case !== "review") return "(an image)";
  const { comments, summary } = part.value;
  const count = comments.length === 1 ? "1 comment" : `${comments.length} comments`;
  return `(a review with ${count}) ${summary || (comments[0]?.text ?? "")}`;
}

function orderOf({ control }: AgentControlInput): string {
  if (control.case !== "goal") return control.case ?? "";
  const { action } = control.value;
  return action.case === "set" ? `goal: ${action.value.objective}` : `goal ${action.case ?? ""}`;
}

/** Returns the first line, shortened. */
function firstLine(text: string): string {
  const [line = ""] = text.trim().split("\n");
  return line.length > MAX_SHOWN_CHARACTERS ? `${line.slice(0, MAX_SHOWN_CHARACTERS)}...` : line;
}
