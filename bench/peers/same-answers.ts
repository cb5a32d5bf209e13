import { isDeepStrictEqual } from "node:util";
import type { LoadRequest } from "../load/task.ts";
import type { Peer } from "./start-peer.ts";

/** Page tokens are each peer's own; that there is one is what counts. */
const NEXT_TOKEN = /"nextToken":"[^"]+"/;

/** @throws when two peers answer a read differently: they would not do the same work */
export async function expectSameAnswers(
  peers: readonly Peer[],
  token: string,
  { operation, body }: LoadRequest,
): Promise<void> {
  const answers = await Promise.all(
    peers.map(async ({ url }) => {
      const res = await fetch(`${url}/api/service.v1.${operation}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body,
      });
      const text = await res.text();
      return { status: res.status, body: JSON.parse(text.replace(NEXT_TOKEN, '"nextToken":"..."')) };
    }),
  );
  const [first] = answers;
  for (const [index, answer] of answers.entries()) {
    if (isDeepStrictEqual(answer, first) && answer.status === 200) continue;
    const [one, other] = [peers[0]?.name, peers[index]?.name];
    throw new Error(
      `${one} and ${other} answer ${operation} ${body} differently:\n${JSON.stringify(first).slice(0, 2000)}\n${JSON.stringify(answer).slice(0, 2000)}`,
    );
  }
}
