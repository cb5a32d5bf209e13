import { Code, ConnectError } from "@connectrpc/connect";

const NOT_THE_PROTOCOL = /^(unsupported content type |parse binary: )/;

/** Returns whether something answered that does not speak the protocol, as the library has detected. */
export function isForeign(error: unknown): boolean {
  const { code, rawMessage } = ConnectError.from(error);
  return [Code.Internal, Code.Unknown].includes(code) && NOT_THE_PROTOCOL.test(rawMessage);
}

/** What a proxy means by a status that it answers itself, and what to do. */
const PROXY_ADVICE: ReadonlyMap<string, string> = new Map([
  ["413", "it limits the size of bodies; remove its limit, since the server has its own"],
  ["429", "it limits how often it is called; try again later, or raise its limit"],
  ...["502", "503", "504"].map(
    (status) =>
      [
        status,
        "it gets no answer from the server; check that the server runs, and where the proxy sends calls",
      ] as const,
  ),
]);

/** Returns what a proxy answered instead of the server, with advice; undefined when it answered nothing itself. */
export function proxyText(error: unknown): string | undefined {
  // The server sent no error of its own; the library made one from the status.
  const [, status = ""] = /^HTTP (\d+)$/.exec(ConnectError.from(error).rawMessage) ?? [];
  const advice = PROXY_ADVICE.get(status);
  return advice && `a proxy in front of the server answered HTTP ${status}: ${advice}`;
}

/** Returns whether something answered that is no server of Chartroom, or a page of one instead of its API. */
export function isOtherService(error: unknown): boolean {
  if (proxyText(error) !== undefined) return false;
  return isForeign(error) || /^HTTP \d+$/.test(ConnectError.from(error).rawMessage);
}

/** Returns the sentence about an address where another service answers. */
export function foreignText(server: string): string {
  return `${server} does not answer like a Chartroom server: name the server, without a path of its console or its API, by --server`;
}
