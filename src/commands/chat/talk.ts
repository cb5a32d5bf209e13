import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  type AgentControlInputSchema,
  type AgentInput,
  AgentInputReceipt,
} from "#gen/service/v1/agent_pb.js";
import { AgentService, type WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { backOffMs, pause } from "../../runner/back-off.ts";
import { connectTo } from "../../runner/connection.ts";
import { StartError } from "../start-error.ts";

type Control = MessageInitShape<typeof AgentControlInputSchema>["control"];

const PAGE = 100;

/** What can be said to one run, and heard of it. */
export class Talk {
  readonly #client: Client<typeof AgentService>;
  readonly #agentExecutionId: string;
  readonly #headers: { readonly authorization: string };

  constructor(server: string, token: string, agentExecutionId: string) {
    this.#client = createClient(AgentService, connectTo(server));
    this.#agentExecutionId = agentExecutionId;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  /** Sends a message. @returns the id that it has in the queue */
  async say(text: string): Promise<string> {
    const id = randomBytes(4).toString("hex");
    const inputs = [{ input: { case: "text" as const, value: { content: text } } }];
    await this.#send({ case: "userInput", value: { id, inputs } });
    return id;
  }

  async order(control: NonNullable<Control>): Promise<void> {
    await this.#send({ case: "controlInput", value: { control } });
  }

  async stop(): Promise<void> {
    await this.#client.stopAgentExecution({ agentExecutionId: this.#agentExecutionId }, this.#options());
  }

  /** What waits in the queue, in the order of delivery; with `all`, everything that was sent, as it came. */
  async inputs(all: boolean): Promise<AgentInput[]> {
    const inputs: AgentInput[] = [];
    const asked = { agentExecutionId: this.#agentExecutionId, includePast: all };
    for (let token = ""; ; ) {
      const pagination = { pageSize: PAGE, token };
      const page = await this.#client.listAgentInputs({ ...asked, pagination }, this.#options());
      inputs.push(...page.inputs);
      token = page.pagination?.nextToken ?? "";
      if (token === "") return inputs;
    }
  }

  /** The id of the queued message that begins so. @throws StartError when none does, or more than one */
  async queuedId(beginning: string): Promise<string> {
    const ids = (await this.inputs(false)).map(({ id }) => id).filter((id) => id.startsWith(beginning));
    const [id] = ids;
    if (id === undefined) throw new StartError(`no message in the queue has an id that begins ${beginning}`);
    if (ids.length > 1 && !ids.includes(beginning)) {
      throw new StartError(`more than one message in the queue has an id that begins ${beginning}`);
    }
    return ids.includes(beginning) ? beginning : id;
  }

  /** Whether the agent has got everything that was sent. */
  async hasAll(): Promise<boolean> {
    const open: readonly AgentInputReceipt[] = [AgentInputReceipt.QUEUED, AgentInputReceipt.DELIVERED];
    return (await this.inputs(true)).every(({ receipt }) => !open.includes(receipt));
  }

  /**
   * What happens in the run, from its beginning to its end. A connection that
   * breaks is made anew and goes on where it was.
   *
   * @throws StartError when the run cannot be watched
   */
  async *watch(signal: AbortSignal): AsyncGenerator<NonNullable<WatchAgentExecutionResponse["news"]>, void> {
    let afterSequence = 0n;
    for (let failures = 1; !signal.aborted; failures++) {
      const asked = { agentExecutionId: this.#agentExecutionId, afterSequence };
      try {
        for await (const { news } of this.#client.watchAgentExecution(asked, this.#options(signal))) {
          failures = 1;
          if (news.case === "block") afterSequence = news.value.sequence;
          yield news;
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!isPassing(error)) throw new StartError(messageOf(error));
        await pause(backOffMs(failures), signal);
      }
    }
  }

  async #send(input: NonNullable<SendInput>): Promise<void> {
    const request = { agentExecutionId: this.#agentExecutionId, input };
    await this.#client.sendToAgentExecution(request, this.#options());
  }

  #options(signal?: AbortSignal): CallOptions {
    return { headers: this.#headers, ...(signal && { signal }) };
  }
}

type SendInput = Parameters<Client<typeof AgentService>["sendToAgentExecution"]>[0]["input"];

/** Whether the same call may succeed later: the server is away, or busy. */
function isPassing(error: unknown): boolean {
  return [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal, Code.Unknown].includes(
    ConnectError.from(error).code,
  );
}

/** What went wrong, for the person at the terminal. */
export function messageOf(error: unknown): string {
  if (!(error instanceof ConnectError)) return (error as Error).message;
  switch (error.code) {
    case Code.Unauthenticated:
      return "the token in CHARTROOM_TOKEN does not hold";
    case Code.NotFound:
      return `${error.rawMessage}: there is no such run, or it is not open to you`;
    default:
      return error.rawMessage;
  }
}
