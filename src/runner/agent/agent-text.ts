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
import { type AgentRun, StderrTail } from "./agent-run.ts";

/**
 * Drives an agent that reads a prompt and prints an answer: its program is
 * started anew for each turn. It ends when the run's signal does.
 *
 * @throws WorkFailure when the program cannot be started, ends without its prompt,
 *   or fails and the run is a step's
 * @throws the reason of the run's signal
 */
export async function converseInText(run: AgentRun): Promise<void> {
  const { report, signal, becomesReady } = run;
  const end = AbortSignal.any([signal, report.failed]);
  if (becomesReady) report.stand(State.WAITING);
  const handed = run.inputs(end)[Symbol.asyncIterator]();
  for (let next = upcoming(handed); ; ) {
    const { value: input } = await next.result;
    if (!input) break;
    next = upcoming(handed);
    report.stand(State.RUNNING);
    await takeTurn(run, input, end);
    // What came into the turn has to wait for its end: it begins the next one.
    if (!next.isThere() && !end.aborted) report.stand(State.WAITING);
  }
  await report.flush();
  signal.throwIfAborted();
}

/** Asks for the next input; tells without waiting whether it is there. */
function upcoming(handed: AsyncIterator<StreamInputsResponse>) {
  let isThere = false;
  const result = handed.next().then((next) => {
    isThere = next.done !== true;
    return next;
  });
  // Whoever waits for it learns of a failure; nobody may yet.
  result.catch(() => undefined);
  return { result, isThere: () => isThere };
}

async function takeTurn(run: AgentRun, handed: StreamInputsResponse, signal: AbortSignal): Promise<void> {
  const { input, turnOptions, extAgentSettings } = handed;
  if (!input) return;
  const { assignment, report, state, program, args, folder } = run;
  const inputId = input.id;
  const prompt = await promptText(input, state.keepImage);
  const starts = await state.countStart();
  const complaint = new StderrTail();
  const mask = assignment.secrets.stream();
  const decoder = new StringDecoder("utf8");
  let hasTaken = false;
  const answer = new StepLog(async ({ data }) => {
    for (const block of textBlocks(decoder.write(Buffer.from(data)))) report.block({ block, inputId });
    await report.room();
  });
  const result = await assignment.tools.programs.run({
    program,
    args,
    folder,
    environment: {
      ...run.environment,
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
      if (stream === "stderr") complaint.add(bytes);
      else await answer.write(mask.write(bytes));
    },
  });
  await answer.write(mask.end());
  await answer.close();
  for (const block of textBlocks(decoder.end())) report.block({ block, inputId });
  if (signal.aborted) return;
  // The run would wait for good: nothing more is delivered to an agent that has not got everything.
  if (!hasTaken)
    throw complaint.failure(result, assignment.secrets, { when: " before it had taken its prompt" });
  if (result.exit === 0) return;
  const failure = complaint.failure(result, assignment.secrets);
  if (run.isStep) throw failure;
  report.block({ block: errorBlock(failure.message), inputId });
}
