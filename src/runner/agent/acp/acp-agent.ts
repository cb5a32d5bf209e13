import { setImmediate as nextTurn } from "node:timers/promises";
import { client } from "@agentclientprotocol/sdk";
import type { CommandResult } from "../../process/command.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";
import { type RunningAgent, StderrTail } from "../running-agent.ts";
import { AcpConversation } from "./acp-conversation.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { OpenRequests } from "./acp-open-requests.ts";
import { AcpStream } from "./acp-stream.ts";

/** Time that an agent has to exit after it was asked to, before it gets SIGTERM. */
const STOP_MS = 2_000;

/**
 * Drives an agent that speaks the Agent Client Protocol over its standard input and output until
 * its program ends; see docs/agents/acp.md.
 *
 * @throws WorkFailure unless it exits by itself, successfully and between turns
 * @throws the reason of the execution's signal when that ended it
 */
export async function driveAcpAgent(agent: RunningAgent, limits: AcpLimits = {}): Promise<void> {
  const { assignment, program, args, folder, environment, report, signal, isStep } = agent;
  const end = new AbortController();
  const stderr = new StderrTail(assignment.secrets);
  const requests = new OpenRequests();
  const { unreadMs = 60_000 } = limits;
  const stream = new AcpStream(
    {
      onWritten: (message) => conversation.onWritten(message),
      onUnreadable: (why, text) => conversation.onUnreadable(why, text),
      onUnread: () => conversation.onUnread(requests.describe(unreadMs)),
      waitForRoom: () => report.waitForRoom(),
    },
    requests,
    unreadMs,
  );
  const conversation = new AcpConversation(agent, requests, limits);
  const onStop = () => {
    setTimeout(() => end.abort(), assignment.lease.isLost ? 0 : STOP_MS).unref();
    void conversation.stop().then(() => stream.closeInput());
  };
  const onFailure = () => end.abort();
  signal.addEventListener("abort", onStop);
  report.failed.addEventListener("abort", onFailure);
  if (signal.aborted) onStop();
  let failure: { readonly cause: unknown } | undefined;
  let result: CommandResult;
  try {
    const running = agent.runCommand({
      program,
      args,
      folder,
      environment,
      signal: end.signal,
      input: (stdin) => stream.open(stdin),
      onOutput: async (bytes, name) => {
        if (name === "stderr") stderr.add(bytes);
        else await stream.read(bytes);
      },
    });
    const connection = conversation.serve(client({ name: "chartroom" })).connect(stream.stream);
    const conversing = conversation.converse(connection.agent).catch((cause) => {
      failure = { cause };
      end.abort();
    });
    try {
      result = await running;
      // The last messages are handled before the connection closes.
      await nextTurn();
    } finally {
      stream.end();
      await connection.closed;
      await conversation.end();
      await conversing;
    }
  } finally {
    signal.removeEventListener("abort", onStop);
    report.failed.removeEventListener("abort", onFailure);
  }
  await report.flush();
  signal.throwIfAborted();
  if (failure?.cause instanceof WorkFailure) throw failure.cause;
  const hasDone = !conversation.isInTurn && (conversation.inputId !== "" || !isStep);
  if (result.exit === 0 && hasDone && !failure) return;
  if (failure && result.stopped) throw failure.cause;
  throw stderr.failure(result);
}
