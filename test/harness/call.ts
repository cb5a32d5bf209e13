import { isStream, packageOf, postStream } from "./call-stream.ts";
import type { ReachableServer } from "./server.ts";

/** The response to a request of hand-written JSON. */
export interface Answer {
  readonly status: number;
  readonly header: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every operation
  readonly body: any;
}

/**
 * Calls an operation with plain fetch, such as `post(server, "ProjectService/GetProject", {
 * projectId })`. Of a stream it returns the first message.
 */
export async function post(
  server: Pick<ReachableServer, "url" | "token">,
  operation: string,
  body: unknown = {},
  token: string | undefined = server.token,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  if (isStream(operation)) return postStream(server, operation, body, token, headers);
  const res = await fetch(`${server.url}/api/${packageOf(operation)}.${operation}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: typeof body === "string" || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, header: res.headers, body: text === "" ? undefined : JSON.parse(text) };
}

/** Returns the reason in an error's ErrorDetail, without its prefix. */
export function reasonOf(answer: Answer): string | undefined {
  const detail = answer.body?.details?.find(
    (each: { type: string }) => each.type === "service.v1.ErrorDetail",
  );
  return detail?.debug?.reason?.replace(/^ERROR_REASON_/, "");
}

/** Returns an initializer with one repository. */
export function repository(remoteUri: string) {
  return { specs: [{ git: { remoteUri } }] };
}
