import { post } from "../../harness/call.ts";
import type { TestServer } from "../../harness/server.ts";
import { failureFromJson, type Speak } from "./outcome.ts";

/** Plain fetch with hand-written JSON. */
export function speakFetch(server: Pick<TestServer, "url" | "token">): Speak {
  return async (operation, request) => {
    const { status, body } = await post(server, `ProjectService/${operation}`, request);
    return status === 200 ? { answer: body } : failureFromJson(body);
  };
}
