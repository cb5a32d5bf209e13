import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import type { AgentSite } from "./agent-site.ts";

/** What messages took, in milliseconds. */
export interface Deliveries {
  /** Until the agent's program had read the message. */
  readonly deliveryMs: number[];
  /** Until whoever watches the run had the answer. */
  readonly answerMs: number[];
}

/** One message a second goes to each run. */
const EVERY_MS = 1_000;

/** Sends each run its messages, and waits for all answers. */
export async function talk(site: AgentSite, runs: readonly string[], messages: number): Promise<Deliveries> {
  const deliveries: Deliveries = { deliveryMs: [], answerMs: [] };
  const talks = runs.map(async (id, index) => {
    // Spread over the second, as people are.
    await delay((index * EVERY_MS) / runs.length);
    await talkWith(site, id, messages, deliveries);
  });
  await Promise.all(talks);
  return deliveries;
}

async function talkWith(
  site: AgentSite,
  id: string,
  messages: number,
  deliveries: Deliveries,
): Promise<void> {
  const sentAt = new Map<string, number>();
  const answered = hear(site, id, messages, sentAt, deliveries);
  const began = performance.now();
  for (let count = 0; count < messages; count++) {
    await delay(Math.max(0, count * EVERY_MS - (performance.now() - began)));
    const inputId = `m${count}`;
    sentAt.set(inputId, nowMs());
    const userInput = { id: inputId, inputs: [{ text: { content: "hello" } }] };
    await site.call("AgentService/SendToAgentExecution", { agentExecutionId: id, userInput });
  }
  await answered;
}

async function hear(
  { server }: AgentSite,
  agentExecutionId: string,
  messages: number,
  sentAt: ReadonlyMap<string, number>,
  { deliveryMs, answerMs }: Deliveries,
): Promise<void> {
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const leaving = new AbortController();
  const news = createClient(AgentService, transport).watchAgentExecution(
    { agentExecutionId },
    { headers: { authorization: `Bearer ${server.token}` }, signal: leaving.signal },
  );
  let left = messages;
  for await (const { news: each } of news) {
    if (each.case !== "block" || each.value.block.case !== "text") continue;
    const sent = sentAt.get(each.value.inputId) ?? Number.NaN;
    deliveryMs.push(Number(each.value.block.value.content) * 1000 - sent);
    answerMs.push(nowMs() - sent);
    left--;
    if (left === 0) break;
  }
  leaving.abort();
}

/** Since 1970, with fractions, as the agents tell it. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
