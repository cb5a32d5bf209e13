import { StringDecoder } from "node:string_decoder";
import {
  ReportAgentRequest_State as State,
  type StreamInputsResponse,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { StepLog } from "../steps/step-log.ts";
import { errorBlock, textBlocks } from "./agent-block.ts";
import { settingVariables } from "./agent-facts.ts";
import { modesOf, settingsOf } from "./agent-input-encoding.ts";
import { promptText } from "./agent-prompt.ts";
import { type RunningAgent, StderrTail } from "./running-agent.ts";

/**
 * Drives an agent that reads a prompt and prints an answer. Starts its program for each turn, until the execution's
 * signal is aborted.
 *
 * @throws WorkFailure when the program cannot be started, ends without reading
 *   its prompt, or fails in the execution of a step
 * @throws the reason of the execution's signal
 */
export async function driveTextAgent(agent: RunningAgent): Promise<void> {
  const { report, signal, becomesReady } = agent;
  const end = AbortSignal.any([signal, report.failed]);
  // Between turns there is no program that could be lost.
  report.update({ canResume: true });
  if (becomesReady) report.setState(State.WAITING);
  const handed = agent.inputs(end)[Symbol.asyncIterator]();
  for (let next = nextInput(handed); ; ) {
    const { value: input } = await next.result;
    if (!input) break;
    next = nextInput(handed);
    report.setState(State.RUNNING);
    await takeTurn(agent, input, end);
    // An input that arrives during a turn begins the next one, so the agent does not wait.
    if (!next.isThere() && !end.aborted) report.setState(State.WAITING);
  }
  await report.flush();
  signal.throwIfAborted();
}

/** Requests the next input; `isThere` returns at once whether it has arrived. */
function nextInput(handed: AsyncIterator<StreamInputsResponse>) {
  let isThere = false;
  const result = handed.next().then((next) => {
    isThere = next.done !== true;
    return next;
  });
  // The caller that awaits the result gets the failure; this prevents an unhandled rejection until then.
  result.catch(() => undefined);
  return { result, isThere: () => isThere };
}

async function takeTurn(
  agent: RunningAgent,
  handed: StreamInputsResponse,
  signal: AbortSignal,
): Promise<void> {
  const { input, turnOptions, extAgentSettings } = handed;
  if (!input) return;
  const { assignment, report, state, program, args, folder } = agent;
  const inputId = input.id;
  const prompt = await promptText(input, state.storeImage);
  const starts = await state.countStart();
  const stderr = new StderrTail(assignment.secrets);
  const mask = assignment.secrets.stream();
  const decoder = new StringDecoder("utf8");
  let hasTaken = false;
  const answer = new StepLog(async ({ data }) => {
    for (const block of textBlocks(decoder.write(Buffer.from(data)))) report.block({ block, inputId });
    await report.waitForRoom();
  });
  const result = await agent.runCommand({
    program,
    args,
    folder,
    environment: {
      ...agent.environment,
      ...(extAgentSettings && settingVariables(settingsOf(extAgentSettings))),
      CHARTROOM_AGENT_TURN_MODES: turnOptions ? modesOf(turnOptions).join(",") : "",
      CHARTROOM_AGENT_STARTS: String(starts),
    },
    signal,
    input: (stdin) => {
      stdin.write(prompt, (error) => {
        if (error) return;
        hasTaken = true;
        report.seen(inputId);
      });
      stdin.end();
    },
    onOutput: async (bytes, stream) => {
      if (stream === "stderr") stderr.add(bytes);
      else await answer.write(mask.write(bytes));
    },
  });
  await answer.write(mask.end());
  await answer.close();
  for (const block of textBlocks(decoder.end())) report.block({ block, inputId });
  if (signal.aborted) return;
  // Otherwise the execution would wait forever: the service sends no more inputs before this one is seen.
  if (!hasTaken) throw stderr.failure(result, { when: " before it had taken its prompt" });
  if (result.exit === 0) return;
  const failure = stderr.failure(result);
  if (agent.isStep) throw failure;
  report.block({ block: errorBlock(failure.message), inputId });
}
