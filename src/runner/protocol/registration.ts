import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { RegisterRequestSchema } from "#gen/runner/v1/work_service_pb.js";
import { RunnerIsolation } from "#gen/service/v1/runner_pb.js";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import { classifyFailure, createWorkClient, isInUse, isUnknownOperation } from "./connection.ts";
import { foreignText, isOtherService, proxyText } from "./foreign-server.ts";
import { RunnerError } from "./runner-error.ts";
import { newInstance, type RunnerState, readState, writeState } from "./runner-state.ts";

export interface RegistrationOptions {
  readonly transport: Transport;
  /** The server as named in the settings; its token is sent to no other server. */
  readonly server: string;
  /** The folder of the runner's state. */
  readonly stateDir: string;
  /** Returns the exchange token, needed when the runner has no valid token; undefined when there is none. */
  readonly exchangeToken: () => Promise<string | undefined>;
  /** The runner's description of itself. */
  readonly introduction: MessageInitShape<typeof RegisterRequestSchema>;
  readonly log: Log;
  /** Stops waiting for an unreachable server. */
  readonly signal: AbortSignal;
}

const CALL_MS = 10_000;

/** Maximum wait for another instance, which may be stopped already: the server notices after 45 seconds. */
const OTHER_INSTANCE_MS = 60_000;
const OTHER_INSTANCE_PAUSE_MS = 5_000;
const ANOTHER_INSTANCE =
  "another instance of this runner is running, in another folder or on another machine: stop it, or create another runner for this one";

/**
 * Returns the runner's registration: the stored one if its token is valid, otherwise a new one. Waits for an
 * unreachable server.
 *
 * @throws RunnerError when the runner cannot register
 * @throws the reason of `signal` when it was aborted
 */
export async function register(options: RegistrationOptions): Promise<RunnerState> {
  const { server, stateDir, log } = options;
  const known = await readState(stateDir);
  if (known && known.server !== server) {
    throw new RunnerError(
      `the folder ${stateDir} is that of a runner of ${known.server}: use another folder for ${server}, or, where that is the same server at another URL, write the URL into its runner.json`,
    );
  }
  if (known && (await isTokenValid(known, options))) return known;
  const exchangeToken = await options.exchangeToken();
  if (!exchangeToken) throw new RunnerError(known ? TOKEN_ENDED : NOT_REGISTERED);
  const instance = known?.instance ?? (await newInstance(stateDir));
  const state = { ...(await exchangeForToken(exchangeToken, options)), instance };
  await writeState(stateDir, state);
  log.info({ runner: state.runnerId, server }, "registered");
  return state;
}

const ADVICE =
  "make an exchange token (chartroom runner create NAME for a new runner, RunnerService/CreateRunnerToken for one that is there) and start with it in CHARTROOM_EXCHANGE_TOKEN or --exchange-token-file";
const NOT_REGISTERED = `the runner is not registered: ${ADVICE}`;
const TOKEN_ENDED = `the runner's token holds no longer, since it has ended or the runner was deleted: ${ADVICE}`;

/** Returns the error of a running runner whose token is no longer valid. */
export function invalidTokenError(): RunnerError {
  return new RunnerError(TOKEN_ENDED);
}

/**
 * Reports the start of the runner's program to the server, which then makes the work of a killed earlier process
 * available for lease at once. Waits for an unreachable server, and while another instance is alive.
 *
 * @returns the instance id for later calls; empty for a server without instances
 * @throws RunnerError when another instance of the runner stays alive
 * @throws the reason of `signal` when it was aborted
 */
export async function beginInstance(
  { token, instance }: RunnerState,
  options: Pick<RegistrationOptions, "transport" | "server" | "log" | "signal">,
): Promise<string> {
  const { transport, log, signal } = options;
  const client = createWorkClient(transport, token);
  const giveUpAt = performance.now() + OTHER_INSTANCE_MS;
  for (;;) {
    const begun = await retryUntilAnswered(options, async (timeoutMs) => {
      try {
        const { lostLeases } = await client.beginInstance({ instanceId: instance.id }, { timeoutMs, signal });
        return { lostLeases };
      } catch (error) {
        if (isUnknownOperation(error)) return "unknown";
        if (classifyFailure(error) === "unauthenticated") throw invalidTokenError();
        if (isInUse(error)) return "taken";
        throw error;
      }
    });
    if (begun === "unknown") return "";
    if (begun !== "taken") {
      if (begun.lostLeases > 0) log.info(begun, "work of the runner's earlier program is taken again");
      return instance.id;
    }
    if (performance.now() > giveUpAt) throw new RunnerError(ANOTHER_INSTANCE);
    log.warn({}, `${ANOTHER_INSTANCE}; trying again`);
    await pause(OTHER_INSTANCE_PAUSE_MS, signal);
    signal.throwIfAborted();
  }
}

async function isTokenValid({ token }: RunnerState, options: RegistrationOptions): Promise<boolean> {
  const client = createWorkClient(options.transport, token);
  const { version = "", isolation = RunnerIsolation.UNSPECIFIED } = options.introduction;
  const { apiAgents = false, keptPolicies } = options.introduction;
  const report = { version, isolation, apiAgents, ...(keptPolicies && { keptPolicies }) };
  return retryUntilAnswered(options, async (timeoutMs) => {
    try {
      await client.heartbeat(report, { timeoutMs, signal: options.signal });
      return true;
    } catch (error) {
      if (classifyFailure(error) === "unauthenticated") return false;
      throw error;
    }
  });
}

async function exchangeForToken(
  exchangeToken: string,
  options: RegistrationOptions,
): Promise<Omit<RunnerState, "instance">> {
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

/** Retries a call until the server answers, for as long as it is unreachable. */
async function retryUntilAnswered<T>(
  { server, log, signal }: Pick<RegistrationOptions, "server" | "log" | "signal">,
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
      if (isOtherService(error))
        log.warn({ server, problem: foreignText(server) }, "another service answers; trying again");
      else
        log.warn(
          { server, problem: proxyText(error) ?? message },
          "the server cannot be reached; trying again",
        );
      await pause(backOffMs(failures), signal);
      signal.throwIfAborted();
    }
  }
}
