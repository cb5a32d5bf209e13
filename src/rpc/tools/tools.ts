import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { authorize } from "../access/authorization.ts";
import { writeConnectError } from "../error/error.ts";
import type { Route } from "../routes.ts";
import { isResumable } from "../stream/stream-positions.ts";
import { type ToolDocument, type ToolSchema, toolSchema } from "./tool-schema.ts";

/** An operation as a tool for programs that follow a model. */
export interface Tool {
  /** The operation's name in lower case with underscores, such as `start_workflow`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema 2020-12 of its arguments: the operation's request, and the parameters of the tool itself. */
  readonly inputSchema: ToolSchema;
  readonly route: Route;
  /** True if it has no side effects. */
  readonly isReadOnly: boolean;
  /** True if a repetition changes nothing more. */
  readonly isIdempotent: boolean;
  /** True if it collects the messages of a stream. */
  readonly isStream: boolean;
}

/** An operation that is a tool, and fields that the tool does not show: they are taken all the same. */
type Offer = readonly [operation: string, hidden?: readonly string[]];

/** Fields of messages to agents other than their texts: they are for people, and for programs that know the contract. */
const NON_TEXT_FIELDS = [
  "UserInputBlock.createdAt",
  "UserInputBlock.id",
  "UserInputBlock.image",
  "UserInputBlock.metadata",
  "UserInputBlock.text",
  "UserInputBlock.Input.image",
  "UserInputBlock.Input.review",
];

/** The tools of everybody who names no others: to start work, follow it, and read what came of it. */
const DEFAULT: readonly Offer[] = [
  ["WorkflowService/ListWorkflows"],
  ["WorkflowService/StartWorkflow"],
  ["WorkflowService/ListWorkflowExecutions"],
  ["WorkflowService/GetWorkflowExecution"],
  ["WorkflowService/ListWorkflowExecutionActions"],
  ["WorkflowService/StreamActionLogs", ["StreamActionLogsRequest.afterOffset"]],
  [
    "AgentService/StartAgent",
    [
      ...NON_TEXT_FIELDS,
      "AgentCodeContext.pullRequest",
      "StartAgentRequest.annotations",
      "StartAgentRequest.extAgentSettings",
      "StartAgentRequest.holdAfterLostTurn",
      "StartAgentRequest.sessionId",
      "StartAgentRequest.turnOptions",
      "StartAgentRequest.workflowActionId",
    ],
  ],
  ["AgentService/ListAgentExecutions"],
  [
    "AgentService/SendToAgentExecution",
    [
      ...NON_TEXT_FIELDS,
      "SendToAgentExecutionRequest.agentMessage",
      "SendToAgentExecutionRequest.controlInput",
      "SendToAgentExecutionRequest.expectedQueueRevision",
      "SendToAgentExecutionRequest.extAgentSettings",
      "SendToAgentExecutionRequest.turnOptions",
      "SendToAgentExecutionRequest.wakeEvent",
    ],
  ],
  ["AgentService/WatchAgentExecution", ["WatchAgentExecutionRequest.afterSequence"]],
  ["ApprovalService/ListApprovals"],
  ["ApprovalService/DecideApproval"],
  ["EnvironmentService/GetEnvironmentDiff"],
  ["EventService/WatchEvents", ["WatchEventsRequest.afterSequence"]],
];

/** Tools that a caller may name in addition to the default ones: each costs a model its description. */
const MAX_NAMED = 32;

/** The tools that a server offers. */
export class Tools {
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #document: ToolDocument;
  /** The default tools by name. */
  readonly #defaults: ReadonlyMap<string, Tool>;
  /** The tools that requests have named, by operation. */
  readonly #named = new Map<string, Tool>();

  /** @param routes those of the contract, by path */
  constructor(routes: ReadonlyMap<string, Route>, document: ToolDocument) {
    this.#routes = routes;
    this.#document = document;
    const defaults = DEFAULT.map(([operation, hidden]) => this.#make(`service.v1.${operation}`, hidden));
    this.#defaults = new Map(defaults.map((tool) => [tool.name, tool]));
  }

  /**
   * Returns the default tools, and others.
   *
   * @param named operations that are tools as well, such as `ProjectService/ListProjects` or, where it is the only one of
   *   the name, `ListProjects`
   * @throws ConnectError VALUE_UNUSABLE for a name of no operation that can be a tool, and for too many
   */
  choose(named: readonly string[] = []): ReadonlyMap<string, Tool> {
    if (named.length > MAX_NAMED) throw unusable(`names more than ${MAX_NAMED} operations`);
    if (named.length === 0) return this.#defaults;
    const chosen = new Map(this.#defaults);
    for (const name of named) {
      const tool = this.#namedTool(this.#operationNamed(name));
      // A default tool that is named shows all of its request.
      chosen.set(tool.name, tool);
    }
    return chosen;
  }

  #operationNamed(name: string): string {
    const operations = Object.keys(this.#document.operations);
    const found = operations.filter((each) => each === `service.v1.${name}` || each.endsWith(`/${name}`));
    const [operation] = found.filter((each) => this.#canBeTool(each));
    // The name is the caller's to choose, and is not repeated.
    if (operation === undefined) throw unusable("names no operation that can be a tool");
    if (found.length > 1) throw unusable("names an operation of several services: put its service before it");
    return operation;
  }

  #canBeTool(operation: string): boolean {
    const method = this.#routes.get(`/${operation}`)?.handle.method;
    return method !== undefined && (method.methodKind === "unary" || isResumable(method));
  }

  #namedTool(operation: string): Tool {
    const tool = this.#named.get(operation) ?? this.#make(operation);
    this.#named.set(operation, tool);
    return tool;
  }

  #make(operation: string, hidden: readonly string[] = []): Tool {
    const route = this.#routes.get(`/${operation}`);
    const described = this.#document.operations[operation];
    if (!route || !described) throw new Error(`gen/tools.json or the contract lacks ${operation}`);
    const { method } = route.handle;
    const isStream = method.methodKind !== "unary";
    const isReadOnly = method.idempotency === Idempotency.NO_SIDE_EFFECTS;
    const kind = isStream ? "stream" : isReadOnly ? "read" : "change";
    return {
      name: this.#nameOf(method),
      title: wordsOf(method.name)
        .join(" ")
        .replace(/^./, (letter) => letter.toUpperCase()),
      description: descriptionOf(described.description, isStream),
      inputSchema: toolSchema(this.#document, described.input, hidden, kind),
      route,
      isReadOnly,
      isIdempotent: isReadOnly || method.idempotency === Idempotency.IDEMPOTENT,
      isStream,
    };
  }

  /** Operations of one name in several services have the service's before it. */
  #nameOf({ name, parent }: DescMethod): string {
    const isOnly =
      Object.keys(this.#document.operations).filter((each) => each.endsWith(`/${name}`)).length === 1;
    const words = isOnly ? [] : wordsOf(parent.name.replace(/Service$/, ""));
    return [...words, ...wordsOf(name)].join("_");
  }
}

/** Returns the tools whose operation a caller may call on anything at all. */
export function toolsFor(caller: Caller, tools: Iterable<Tool>): Tool[] {
  return [...tools].filter(({ route, isReadOnly }) => !authorize(route.operation, caller, !isReadOnly));
}

const COLLECTS =
  "Collects what comes, and answers when something has come and nothing more for a second, when the stream ends or after `waitSeconds`: `messages`, whether the stream has `ended`, and `next`, which goes on behind them as `after`.";

/** Returns an operation's comment up to its errors, which come with their reasons when they happen. */
function descriptionOf(text: string, isStream: boolean): string {
  const [before = ""] = text.split(/\bErrors:/);
  return isStream ? `${before.trim()}\n\n${COLLECTS}` : before.trim();
}

/** Returns the words of a name of the contract in lower case: abbreviations are one word. */
function wordsOf(name: string): string[] {
  return name
    .replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ")
    .toLowerCase()
    .split(" ");
}

function unusable(problem: string) {
  return writeConnectError(ErrorReason.VALUE_UNUSABLE, `the parameter tools of the URL ${problem}`, {
    field: "tools",
  });
}
