import { post } from "../../harness/call.ts";
import type { ReachableServer } from "../../harness/server.ts";
import { failureFromJson, type Speak } from "./outcome.ts";

/** Plain fetch with hand-written JSON. */
export function speakFetch(server: Pick<ReachableServer, "url" | "token">): Speak {
  return async (operation, request) => {
    const { status, body } = await post(server, `ProjectService/${operation}`, request);
    return status === 200 ? { answer: body } : failureFromJson(body);
  };
}
