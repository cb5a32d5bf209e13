import { codeFromString, codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import type { Answer } from "./call.ts";
import type { ReachableServer } from "./server.ts";

/** Ends a stream that sends nothing, so that no test waits for it. */
const DEADLINE_MS = 60_000;

/** Flag of the envelope that ends a stream of the Connect protocol. */
const END_FLAG = 2;

/** Returns whether an operation is server-streaming; a test of the contract checks this naming rule. */
export function isStream(operation: string): boolean {
  return /\/(Watch|Stream)[A-Z]/.test(operation);
}

/** Returns the package of an operation, by its service. */
export function packageOf(operation: string): string {
  return /^(Agent|Environment)?WorkService\//.test(operation) ? "runner.v1" : "service.v1";
}

/** Returns the first message of a stream, or the error that ends it, like the response of a unary call. */
export async function postStream(
  server: Pick<ReachableServer, "url">,
  operation: string,
  body: unknown,
  token: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const res = await fetch(`${server.url}/api/${packageOf(operation)}.${operation}`, {
    method: "POST",
    headers: {
      "content-type": "application/connect+json",
      "connect-timeout-ms": String(DEADLINE_MS),
      ...(token && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: envelope(typeof body === "string" ? body : JSON.stringify(body)) as BodyInit,
  });
  let received = Buffer.alloc(0);
  // Returning from the loop closes the stream.
  for await (const chunk of res.body ?? []) {
    received = Buffer.concat([received, chunk]);
    const length = received.length < 5 ? Number.POSITIVE_INFINITY : received.readUInt32BE(1);
    if (received.length < 5 + length) continue;
    const message = JSON.parse(received.subarray(5, 5 + length).toString());
    if (received[0] !== END_FLAG) return { status: res.status, header: res.headers, body: message };
    const code = codeFromString(message.error?.code);
    const status = code === undefined ? res.status : codeToHttpStatus(code);
    return { status, header: res.headers, body: message.error };
  }
  throw new Error(`${operation} ended with the status ${res.status} and no whole message`);
}

function envelope(text: string): Buffer {
  const data = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}
