import { Code, ConnectError } from "@connectrpc/connect";

const NOT_THE_PROTOCOL = /^(unsupported content type |parse binary: )/;

/** Returns whether something answered that does not speak the protocol, as the library has detected. */
export function isForeign(error: unknown): boolean {
  const { code, rawMessage } = ConnectError.from(error);
  return [Code.Internal, Code.Unknown].includes(code) && NOT_THE_PROTOCOL.test(rawMessage);
}

/** Returns whether something answered that is no server of Chartroom, or a page of one instead of its API. */
export function isOtherService(error: unknown): boolean {
  // A proxy answers 502 to 504 while the server behind it is unreachable.
  return isForeign(error) || /^HTTP (?!50[234]$)\d+$/.test(ConnectError.from(error).rawMessage);
}

/** Returns the sentence about an address where another service answers. */
export function foreignText(server: string): string {
  return `${server} does not answer like a Chartroom server: name the server, without a path of its console or its API, by --server`;
}
