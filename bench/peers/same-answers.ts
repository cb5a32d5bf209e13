import { isDeepStrictEqual } from "node:util";
import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { LoadRequest } from "../load/task.ts";
import { projectService } from "./grpc-contract.ts";
import type { Peer } from "./start-peer.ts";

/** Page tokens differ between peers, so only their presence is compared. */
const NEXT_TOKEN = /"nextToken":"[^"]+"/;

/** @throws when two peers answer a read differently, since they would not do the same work */
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
  requireAlike(peers, answers, `${operation} ${body}`, ({ status }) => status === 200);
}

/** @throws when two peers answer GetProject over gRPC differently, or one accepts a call without a token */
export async function expectSameGrpcAnswers(
  peers: readonly Peer[],
  token: string,
  { operation, body }: LoadRequest,
): Promise<void> {
  const request = JSON.parse(body) as object;
  const ask = (header: string) => Promise.all(peers.map(({ url }) => getProject(url, request, header)));
  requireAlike(peers, await ask(`Bearer ${token}`), `${operation} ${body}`, ({ code }) => code === status.OK);
  const refused = await ask("Bearer nobody");
  requireAlike(peers, refused, "a token of nobody", ({ code }) => code === status.UNAUTHENTICATED);
}

async function getProject(url: string, request: object, authorization: string) {
  const Service = projectService(true);
  const client = new Service(new URL(url).host, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", authorization);
  try {
    return await new Promise<{ code: number; answer?: unknown }>((resolve) => {
      client.getProject?.(request, metadata, (error: ServiceError | null, answer: unknown) =>
        resolve(error ? { code: error.code } : { code: status.OK, answer }),
      );
    });
  } finally {
    client.close();
  }
}

function requireAlike<T>(
  peers: readonly Peer[],
  answers: readonly T[],
  asked: string,
  isExpected: (answer: T) => boolean,
): void {
  const [first] = answers;
  for (const [index, answer] of answers.entries()) {
    if (isDeepStrictEqual(answer, first) && isExpected(answer)) continue;
    const [one, other] = [peers[0]?.name, peers[index]?.name];
    throw new Error(
      `${one} and ${other} answer ${asked} differently:\n${JSON.stringify(first).slice(0, 2000)}\n${JSON.stringify(answer).slice(0, 2000)}`,
    );
  }
}
