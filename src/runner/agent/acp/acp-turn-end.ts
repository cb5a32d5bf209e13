import type { RequestError } from "@agentclientprotocol/sdk";

/** Messages to people about a turn that ended otherwise than well, by the reason for which it stopped. */
export const STOP_REASONS: Readonly<Record<string, string | undefined>> = {
  max_tokens: "the agent ended its turn: it has reached the most tokens of one",
  max_turn_requests: "the agent ended its turn: it has reached the most requests to its model of one",
  refusal: "the agent refuses to go on",
};

/** Returns whether it is the error with which the library rejects requests on a connection that is closed. */
export function agentIsGone(error: RequestError): boolean {
  return /connection closed/i.test(error.message);
}
