import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { RegisterRequestSchema } from "#gen/runner/v1/work_service_pb.js";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import { connectionProblemOf, workClient } from "./connection.ts";
import { RunnerProblem } from "./runner-problem.ts";
import { type RunnerState, readState, writeState } from "./runner-state.ts";

export interface RegistrationOptions {
  readonly transport: Transport;
  /** The server, as the settings name it: a token is shown to no other. */
  readonly server: string;
  /** Folder of the runner's state. */
  readonly stateDir: string;
  /** Asked for when the runner has no token that holds; undefined when there is none. */
  readonly exchangeToken: () => Promise<string | undefined>;
  /** What the runner says of itself. */
  readonly introduction: MessageInitShape<typeof RegisterRequestSchema>;
  readonly log: Log;
  /** Ends the waiting for a server that is away. */
  readonly signal: AbortSignal;
}

const CALL_MS = 10_000;

/**
 * The runner's registration: the one of an earlier start while its token holds,
 * or a new one. Waits for a server that is away.
 *
 * @throws RunnerProblem when there is none to be had
 * @throws the reason of `signal` when that ended it
 */
export async function register(options: RegistrationOptions): Promise<RunnerState> {
  const { server, stateDir, log } = options;
  const known = await readState(stateDir);
  if (known && known.server !== server) {
    throw new RunnerProblem(
      `the folder ${stateDir} is that of a runner of ${known.server}: use another folder for ${server}`,
    );
  }
  if (known && (await stillHolds(known, options))) return known;
  const exchangeToken = await options.exchangeToken();
  if (!exchangeToken) throw new RunnerProblem(known ? NO_LONGER : NOT_YET);
  const state = await registerAnew(exchangeToken, options);
  await writeState(stateDir, state);
  log.info({ runner: state.runnerId, server }, "registered");
  return state;
}

const HOW_TO =
  "make an exchange token with RunnerService/CreateRunnerToken and start with it in CHARTROOM_EXCHANGE_TOKEN or --exchange-token-file";
const NOT_YET = `the runner is not registered: ${HOW_TO}`;
const NO_LONGER = `the runner's token holds no longer, since it has ended or the runner was deleted: ${HOW_TO}`;

/** For a runner that works already. */
export function tokenEnded(): RunnerProblem {
  return new RunnerProblem(NO_LONGER);
}

async function stillHolds({ token }: RunnerState, options: RegistrationOptions): Promise<boolean> {
  const client = workClient(options.transport, token);
  const { version = "" } = options.introduction;
  return untilAnswered(options, async (timeoutMs) => {
    try {
      await client.heartbeat({ version }, { timeoutMs, signal: options.signal });
      return true;
    } catch (error) {
      if (connectionProblemOf(error) === "unauthenticated") return false;
      throw error;
    }
  });
}

async function registerAnew(exchangeToken: string, options: RegistrationOptions): Promise<RunnerState> {
  const client = workClient(options.transport, exchangeToken);
  return untilAnswered(options, async (timeoutMs) => {
    try {
      const { runnerId, token } = await client.register(options.introduction, {
        timeoutMs,
        signal: options.signal,
      });
      return { server: options.server, runnerId, token };
    } catch (error) {
      if (connectionProblemOf(error) !== "unauthenticated") throw error;
      throw new RunnerProblem(
        `the exchange token was used or replaced, or is older than 24 hours: ${HOW_TO}`,
      );
    }
  });
}

/** Calls until the server answers, however long it is away. */
async function untilAnswered<T>(
  { server, log, signal }: RegistrationOptions,
  call: (timeoutMs: number) => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await call(CALL_MS);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RunnerProblem) throw error;
      const { message } = error as Error;
      if (connectionProblemOf(error) !== "passing") {
        throw new RunnerProblem(`the server ${server} takes no runner: ${message}`);
      }
      log.warn({ server, problem: message }, "the server cannot be reached; trying again");
      await pause(backOffMs(failures), signal);
      signal.throwIfAborted();
    }
  }
}
