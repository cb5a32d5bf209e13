import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import type { AgentSite } from "./agent-site.ts";

/** The messages to the agents, and the clients that watch. */
export interface Talk {
  /** The text of each message: bench/agent.sh answers "work" with blocks of every kind. */
  readonly text: string;
  /** Number of messages to each run, one a second. */
  readonly messages: number;
  /** The views in which each run is watched, one stream for each. */
  readonly views: readonly AgentOutputView[];
  /** Time over which the first messages to all runs are spread, in milliseconds; a second when absent. */
  readonly spreadMs?: number;
}

/** The latencies of messages, in milliseconds since the call of SendToAgentExecution. */
export interface Deliveries {
  /** Until the call returned. */
  readonly sentMs: number[];
  /** Until the agent's program had read the message. */
  readonly deliveryMs: number[];
  /** Until the client that watches the run received the answer, by view. */
  readonly answerMs: ReadonlyMap<AgentOutputView, number[]>;
  /** Number of blocks that were sent to all watching clients. */
  blocks: number;
}

/** Each run gets one message a second. */
const EVERY_MS = 1_000;

/** Sends each run its messages and waits for all answers. */
export async function talk(site: AgentSite, runs: readonly string[], what: Talk): Promise<Deliveries> {
  const answerMs = new Map(what.views.map((view) => [view, [] as number[]]));
  const deliveries: Deliveries = { sentMs: [], deliveryMs: [], answerMs, blocks: 0 };
  // A token allows at most 64 streams, so each view has its own token.
  const tokens = await Promise.all(what.views.map(() => newToken(site)));
  const { spreadMs = EVERY_MS } = what;
  const talks = runs.map(async (id, index) => {
    // Spread the first messages, as people would.
    await delay((index * spreadMs) / runs.length);
    await talkWith(site, id, what, tokens, deliveries);
  });
  await Promise.all(talks);
  return deliveries;
}

async function talkWith(
  site: AgentSite,
  id: string,
  { text, messages, views }: Talk,
  tokens: readonly string[],
  deliveries: Deliveries,
): Promise<void> {
  const sentAt = new Map<string, number>();
  const answered = Promise.all(
    views.map((view, index) =>
      hear(site, id, { token: tokens[index] ?? "", messages, view, sentAt, deliveries }),
    ),
  );
  const began = performance.now();
  for (let count = 0; count < messages; count++) {
    await delay(Math.max(0, count * EVERY_MS - (performance.now() - began)));
    const inputId = `${text}-${count}`;
    const at = nowMs();
    sentAt.set(inputId, at);
    const userInput = { id: inputId, inputs: [{ text: { content: text } }] };
    await site.call("AgentService/SendToAgentExecution", { agentExecutionId: id, userInput });
    deliveries.sentMs.push(nowMs() - at);
  }
  await answered;
}

async function newToken({ call }: AgentSite): Promise<string> {
  const { subject } = await call("IdentityService/GetAuthenticatedIdentity", {});
  const request = { userId: subject.id, description: "a view of the bench", validFor: "86400s" };
  return (await call("UserService/CreatePersonalAccessToken", request)).token;
}

interface Hearing {
  readonly token: string;
  readonly messages: number;
  readonly view: AgentOutputView;
  readonly sentAt: ReadonlyMap<string, number>;
  readonly deliveries: Deliveries;
}

async function hear(
  { server }: AgentSite,
  agentExecutionId: string,
  { token, messages, view, sentAt, deliveries }: Hearing,
): Promise<void> {
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const leaving = new AbortController();
  const news = createClient(AgentService, transport).watchAgentExecution(
    { agentExecutionId, view },
    { headers: { authorization: `Bearer ${token}` }, signal: leaving.signal },
  );
  const [first] = deliveries.answerMs.keys();
  let left = messages;
  for await (const { news: each } of news) {
    const sent = each.case === "block" ? sentAt.get(each.value.inputId) : undefined;
    // The blocks of an earlier talk arrive first.
    if (each.case !== "block" || sent === undefined) continue;
    deliveries.blocks++;
    if (each.value.block.case !== "text") continue;
    if (view === first) deliveries.deliveryMs.push(Number(each.value.block.value.content) * 1000 - sent);
    deliveries.answerMs.get(view)?.push(nowMs() - sent);
    left--;
    if (left === 0) break;
  }
  leaving.abort();
}

/** Returns the time in milliseconds since 1970, with fractions, as the agents print it. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
