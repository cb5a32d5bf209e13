import type { Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { foreignText } from "../../runner/protocol/foreign-server.ts";
import { fetchBounded } from "../../scm/bounded-fetch.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { unreachableText } from "./call.ts";
import { printable } from "./printable.ts";

/** A request to a server for a token that a person approves (RFC 8628). */
export interface DeviceRequest {
  readonly server: string;
  /** Shows the address, the code and its remaining time. */
  readonly output: Writable & { readonly isTTY?: boolean };
  /** The machine's name, shown to the person. */
  readonly machine: string;
}

/** The well-formed parts of the server's response. */
interface Answer {
  readonly status: number;
  text(name: string): string;
  /** Returns a number of seconds from 1 to `most`; `most` when it is missing. */
  seconds(name: string, most: number): number;
}

/** Timeout of one request, in milliseconds. */
const REQUEST_MS = 30_000;

/** Upper limits on the server's poll interval and total time, in seconds. */
const MAX_INTERVAL_SECONDS = 60;
const MAX_VALID_SECONDS = 3_600;

/** Seconds to add to the poll interval after `slow_down` (RFC 8628, 3.5). */
const SLOWER_SECONDS = 5;

const ENDED: Readonly<Record<string, string>> = {
  access_denied: "the login was refused",
  expired_token: "nobody has allowed the login in time: begin again",
  invalid_grant: "the login is not known to the server any more: begin again",
};

/**
 * Gets a token that a person approves in a browser on any machine. Opens no browser.
 * @throws StartError when the person refuses, or nobody approves in time
 */
export async function askForToken({ server, output, machine }: DeviceRequest): Promise<string> {
  const begun = await send(server, "authorize", { client_id: "chartroom", machine });
  if (begun.status !== 200) throw refusalOf(begun, server);
  const [page, code] = [begun.text("verification_uri"), begun.text("user_code")];
  if (page === "" || code === "") throw new StartError(foreignText(server));
  output.write(`Open ${page} in a browser, on any machine, and type the code ${code}\n`);
  const endsAt = performance.now() + begun.seconds("expires_in", MAX_VALID_SECONDS) * 1000;
  const progress = showProgress(output, endsAt);
  try {
    let intervalSeconds = begun.seconds("interval", MAX_INTERVAL_SECONDS);
    while (performance.now() < endsAt) {
      const answer = await ask(server, begun.text("device_code"));
      if (answer?.status === 200) return answer.text("access_token");
      const problem = answer?.text("error") ?? "";
      const ended = Object.hasOwn(ENDED, problem) ? ENDED[problem] : undefined;
      if (ended) throw new StartError(ended, { exitCode: ExitCode.refused });
      if (problem !== "authorization_pending") intervalSeconds += SLOWER_SECONDS;
      await wait(intervalSeconds * 1000);
    }
    throw new StartError(ENDED.expired_token ?? "", { exitCode: ExitCode.refused });
  } finally {
    progress.end();
  }
}

/** Asks whether the person has decided; undefined when the server is unavailable. */
async function ask(server: string, device_code: string): Promise<Answer | undefined> {
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  try {
    return await send(server, "token", { client_id: "chartroom", grant_type, device_code });
  } catch {
    // The server may be starting; the code's lifetime limits the retries.
    return undefined;
  }
}

async function send(server: string, path: string, form: Readonly<Record<string, string>>): Promise<Answer> {
  const url = `${server}/sign-in/device/${path}`;
  let res: Response;
  try {
    const body = new URLSearchParams(form);
    res = await fetchBounded(url, {
      method: "POST",
      body,
      redirect: "error",
      signal: AbortSignal.timeout(REQUEST_MS),
    });
  } catch (error) {
    const { cause, message } = error as Error;
    const reason = cause instanceof Error ? cause.message : message;
    throw new StartError(`the server ${server} cannot be reached: ${unreachableText(server, reason)}`, {
      exitCode: ExitCode.unavailable,
    });
  }
  const fields: Record<string, unknown> = await res.json().catch(() => ({}));
  return {
    status: res.status,
    text: (name) => (typeof fields[name] === "string" ? printable(fields[name]) : ""),
    seconds(name, most) {
      const value = fields[name];
      return typeof value === "number" && value >= 1 && value <= most ? value : most;
    },
  };
}

function refusalOf(answer: Answer, server: string): StartError {
  const reason = answer.text("error_description") || answer.text("error");
  if (reason !== "") return new StartError(reason, { exitCode: ExitCode.refused });
  const message = `${server} does not offer login in a browser: chartroom login --paste takes a token`;
  return new StartError(message, { exitCode: ExitCode.refused });
}

/** Shows how long the code is valid: at a terminal each minute on the same line, elsewhere once. */
function showProgress(output: DeviceRequest["output"], endsAt: number) {
  const line = () => {
    const minutes = Math.max(1, Math.ceil((endsAt - performance.now()) / 60_000));
    return `Waiting until somebody allows it; the code holds ${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
  };
  if (!output.isTTY) {
    output.write(`${line()}\n`);
    return { end() {} };
  }
  const show = () => output.write(`\r\u001b[K${line()}`);
  show();
  const timer = setInterval(show, 60_000);
  return {
    end() {
      clearInterval(timer);
      output.write("\n");
    },
  };
}
