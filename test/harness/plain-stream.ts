import type { ReachableServer } from "./server.ts";

/** The forms of streams for programs without a client. */
export const PLAIN_FORMS = ["text/event-stream", "application/x-ndjson"] as const;
export type PlainForm = (typeof PLAIN_FORMS)[number];

/** How a stream is asked for; by GET unless it says otherwise. */
export interface PlainRequest {
  readonly form: PlainForm;
  readonly message?: object;
  readonly method?: "GET" | "POST";
  /** Undefined: no token is sent. */
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One message, or the last words of a stream. */
export interface PlainMessage {
  readonly kind: "message" | "failure" | "end";
  /** The place behind it; lines have none. */
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at answers as they are
  readonly body: any;
}

/** A stream that is read as it comes. */
export interface PlainReader {
  readonly status: number;
  readonly header: Headers;
  /** Resolves with the next message; undefined once the body is over. */
  next(): Promise<PlainMessage | undefined>;
  /** Resolves with so many messages. */
  take(count: number): Promise<PlainMessage[]>;
  /** Resolves with what is left. */
  rest(): Promise<PlainMessage[]>;
  /** Resolves with the body of an answer that is no stream. */
  json(): Promise<PlainMessage["body"]>;
  /** Cuts the connection. */
  cut(): void;
}

/** Opens a stream of an operation of service.v1 as curl does. */
export async function openPlain(
  { url }: Pick<ReachableServer, "url">,
  operation: string,
  { form, message, method = "GET", token, headers = {} }: PlainRequest,
): Promise<PlainReader> {
  const text = JSON.stringify(message ?? {});
  const query = method === "GET" && message ? `?message=${encodeURIComponent(text)}` : "";
  const cutting = new AbortController();
  const res = await fetch(`${url}/api/service.v1.${operation}${query}`, {
    method,
    headers: {
      accept: form,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(method === "POST" && { "content-type": "application/json" }),
      ...headers,
    },
    ...(method === "POST" && { body: text }),
    signal: cutting.signal,
  });
  const messages = read(form, res);
  const next = async () => (await messages.next()).value ?? undefined;
  const take = async (count: number) => {
    const taken: PlainMessage[] = [];
    while (taken.length < count) {
      const message = await next();
      if (!message) throw new Error(`the stream ended after ${JSON.stringify(taken)}`);
      taken.push(message);
    }
    return taken;
  };
  return {
    status: res.status,
    header: res.headers,
    next,
    take,
    async rest() {
      const left: PlainMessage[] = [];
      for (let message = await next(); message; message = await next()) left.push(message);
      return left;
    },
    json: () => res.json(),
    cut: () => cutting.abort(),
  };
}

async function* read(form: PlainForm, res: Response): AsyncGenerator<PlainMessage, undefined> {
  const isEvents = form === "text/event-stream";
  const separator = isEvents ? "\n\n" : "\n";
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of res.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf(separator); end >= 0; end = text.indexOf(separator)) {
      const part = text.slice(0, end);
      text = text.slice(end + separator.length);
      const message = isEvents ? eventIn(part) : lineIn(part);
      if (message) yield message;
    }
  }
  if (text !== "") throw new Error(`the stream ended inside a message: ${text}`);
  return undefined;
}

function lineIn(line: string): PlainMessage | undefined {
  if (line === "") return undefined;
  const body = JSON.parse(line);
  return { kind: body.error ? "failure" : "message", id: undefined, body: body.error ?? body };
}

function eventIn(block: string): PlainMessage | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()] as const;
    }),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  const kind = (fields.get("event") ?? "message") as PlainMessage["kind"];
  return { kind, id: fields.get("id"), body: JSON.parse(data) };
}
