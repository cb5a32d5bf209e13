import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { RegisterRequestSchema } from "#gen/runner/v1/work_service_pb.js";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import { classifyFailure, createWorkClient } from "./connection.ts";
import { RunnerError } from "./runner-error.ts";
import { type RunnerState, readState, writeState } from "./runner-state.ts";

export interface RegistrationOptions {
  readonly transport: Transport;
  /** The server, as the settings name it: a token is sent to no other. */
  readonly server: string;
  /** The folder of the runner's state. */
  readonly stateDir: string;
  /** Returns the exchange token, needed when the runner has no valid token; undefined when there is none. */
  readonly exchangeToken: () => Promise<string | undefined>;
  /** The runner's description of itself. */
  readonly introduction: MessageInitShape<typeof RegisterRequestSchema>;
  readonly log: Log;
  /** Ends the waiting for an unreachable server. */
  readonly signal: AbortSignal;
}

const CALL_MS = 10_000;

/**
 * Returns the runner's registration: that of an earlier start while its token is
 * valid, or a new one. Waits for an unreachable server.
 *
 * @throws RunnerError when the runner cannot register
 * @throws the reason of `signal` when that ended it
 */
export async function register(options: RegistrationOptions): Promise<RunnerState> {
  const { server, stateDir, log } = options;
  const known = await readState(stateDir);
  if (known && known.server !== server) {
    throw new RunnerError(
      `the folder ${stateDir} is that of a runner of ${known.server}: use another folder for ${server}`,
    );
  }
  if (known && (await isTokenValid(known, options))) return known;
  const exchangeToken = await options.exchangeToken();
  if (!exchangeToken) throw new RunnerError(known ? TOKEN_ENDED : NOT_REGISTERED);
  const state = await exchangeForToken(exchangeToken, options);
  await writeState(stateDir, state);
  log.info({ runner: state.runnerId, server }, "registered");
  return state;
}

const ADVICE =
  "make an exchange token with RunnerService/CreateRunnerToken and start with it in CHARTROOM_EXCHANGE_TOKEN or --exchange-token-file";
const NOT_REGISTERED = `the runner is not registered: ${ADVICE}`;
const TOKEN_ENDED = `the runner's token holds no longer, since it has ended or the runner was deleted: ${ADVICE}`;

/** Returns the error of a running runner whose token is not valid any more. */
export function invalidTokenError(): RunnerError {
  return new RunnerError(TOKEN_ENDED);
}

async function isTokenValid({ token }: RunnerState, options: RegistrationOptions): Promise<boolean> {
  const client = createWorkClient(options.transport, token);
  const { version = "" } = options.introduction;
  return retryUntilAnswered(options, async (timeoutMs) => {
    try {
      await client.heartbeat({ version }, { timeoutMs, signal: options.signal });
      return true;
    } catch (error) {
      if (classifyFailure(error) === "unauthenticated") return false;
      throw error;
    }
  });
}

async function exchangeForToken(exchangeToken: string, options: RegistrationOptions): Promise<RunnerState> {
  const client = createWorkClient(options.transport, exchangeToken);
  return retryUntilAnswered(options, async (timeoutMs) => {
    try {
      const { runnerId, token } = await client.register(options.introduction, {
        timeoutMs,
        signal: options.signal,
      });
      return { server: options.server, runnerId, token };
    } catch (error) {
      if (classifyFailure(error) !== "unauthenticated") throw error;
      throw new RunnerError(`the exchange token was used or replaced, or is older than 24 hours: ${ADVICE}`);
    }
  });
}

/** Repeats a call until the server answers, however long it is unreachable. */
async function retryUntilAnswered<T>(
  { server, log, signal }: RegistrationOptions,
  call: (timeoutMs: number) => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await call(CALL_MS);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RunnerError) throw error;
      const { message } = error as Error;
      if (classifyFailure(error) !== "transient") {
        throw new RunnerError(`the server ${server} takes no runner: ${message}`);
      }
      log.warn({ server, problem: message }, "the server cannot be reached; trying again");
      await pause(backOffMs(failures), signal);
      signal.throwIfAborted();
    }
  }
}
