import { create, toJsonString } from "@bufbuild/protobuf";
import {
  type WatchAgentExecutionResponse,
  WatchAgentExecutionResponseSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { ConversationClient, type ConversationOptions } from "../../chat/conversation-client.ts";
import { type RunView, Screen } from "../../chat/screen.ts";
import { ChatView } from "../../chat/view.ts";

export interface WatchOptions extends ConversationOptions {
  /** True to return once the agent has answered everything and waits for input. */
  readonly untilWaiting: boolean;
  /** True to print one service.v1.WatchAgentExecutionResponse per line as JSON. */
  readonly json: boolean;
  readonly print: (text: string) => void;
}

/**
 * Prints the output of a run from its beginning, live, until the run stops.
 * @returns whether the run has not failed
 * @throws StartError when the run cannot be watched, or the server was unreachable for too long
 */
export async function watchRun({ untilWaiting, json, print, ...place }: WatchOptions): Promise<boolean> {
  const conversation = new ConversationClient(place);
  const screen = new Screen(conversation, json ? jsonView(print) : new ChatView(print));
  const leaving = new AbortController();
  const answered = untilWaiting
    ? screen.untilAnswered(leaving.signal).finally(() => leaving.abort())
    : Promise.resolve();
  // The code below awaits a failure; until then it must not be an unhandled rejection.
  answered.catch(() => undefined);
  try {
    await screen.show(leaving.signal);
  } finally {
    leaving.abort();
  }
  await answered;
  return screen.isWell;
}

function jsonView(print: (text: string) => void): RunView {
  const show = (news: WatchAgentExecutionResponse["news"]) => {
    const message = create(WatchAgentExecutionResponseSchema, { news });
    print(`${toJsonString(WatchAgentExecutionResponseSchema, message)}\n`);
  };
  return {
    showsStateLast: false,
    note: () => undefined,
    block: (value) => show({ case: "block", value }),
    sent: () => undefined,
    run: (value) => show({ case: "agentExecution", value }),
    inputs: () => undefined,
    endLine: () => undefined,
  };
}
