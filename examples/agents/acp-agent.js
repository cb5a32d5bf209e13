#!/usr/bin/env node
/**
 * An agent of the Agent Client Protocol that does what its messages say, to try out Chartroom and for its tests
 * (docs/agents/acp.md). It needs Node 20 or newer and the packages of this repository:
 *
 *     npx chartroom agent add acp --form acp --command "node $PWD/examples/agents/acp-agent.js"
 *
 * Each line of a message is a command; one message is one turn:
 *
 *     echo WORDS       outputs the words
 *     count            outputs how many messages its session has received, including earlier processes
 *     write PATH WORDS makes the runner write a file of the repository; " / " separates its lines
 *     read PATH        makes the runner read a file, and outputs its content
 *     run COMMAND      makes the runner execute a command, and outputs what it printed
 *     ask WORDS        asks for permission to execute something, and outputs the decision
 *     question WORDS   asks a person, and outputs the answer
 *     links            outputs what the message links to
 *     slow NUMBER      works for this number of steps of 200 ms each
 *
 * Of a review, it executes the lines that are commands, and ignores the others.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { agent, ndJsonStream, RequestError } from "@agentclientprotocol/sdk";

/** The agent's own file with a line for each message of a session. */
const historyOf = (sessionId) => join(process.env.HOME ?? "/tmp", `${sessionId}.messages`);
let turn = new AbortController();

const app = agent({ name: "acp-example" })
  .onRequest("initialize", () => ({
    protocolVersion: 1,
    agentCapabilities: { sessionCapabilities: { resume: {} } },
  }))
  .onRequest("session/new", () => ({ sessionId: crypto.randomUUID() }))
  .onRequest("session/resume", ({ params: { sessionId } }) => {
    if (!existsSync(historyOf(sessionId))) throw RequestError.sessionNotFound(sessionId);
    return {};
  })
  .onNotification("session/cancel", () => turn.abort())
  .onRequest("session/prompt", async ({ params: { sessionId, prompt }, client }) => {
    turn = new AbortController();
    const { signal } = turn;
    appendFileSync(historyOf(sessionId), `${JSON.stringify(prompt)}\n`);
    const lines = prompt.flatMap((part) => (part.type === "text" ? part.text.split("\n") : []));
    for (const line of lines) {
      try {
        await obey(line, { client, sessionId, signal, prompt });
      } catch (error) {
        if (!signal.aborted) await say(client, sessionId, `${line}: ${error.message}\n`);
      }
      if (signal.aborted) return { stopReason: "cancelled" };
    }
    return { stopReason: "end_turn" };
  });

app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

const say = (client, sessionId, text) =>
  client.notify("session/update", {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
  });

async function obey(line, { client, sessionId, signal, prompt }) {
  const [, command = "", words = ""] = /^(\S*) ?(.*)$/.exec(line) ?? [];
  const answer = (text) => say(client, sessionId, `${text}\n`);
  const request = (method, params) => client.request(method, { sessionId, ...params });
  switch (command) {
    case "":
      return;
    case "echo":
      return answer(words);
    case "count":
      return answer(readFileSync(historyOf(sessionId), "utf8").split("\n").length - 1);
    case "write": {
      const [, path = "", content = ""] = /^(\S*) ?(.*)$/.exec(words) ?? [];
      return request("fs/write_text_file", {
        path: join(process.cwd(), path),
        content: `${content.replaceAll(" / ", "\n")}\n`,
      });
    }
    case "read": {
      const { content } = await request("fs/read_text_file", { path: join(process.cwd(), words) });
      return answer(content.trimEnd());
    }
    case "run": {
      const { terminalId } = await request("terminal/create", { command: "sh", args: ["-c", words] });
      await request("terminal/wait_for_exit", { terminalId });
      const { output } = await request("terminal/output", { terminalId });
      await request("terminal/release", { terminalId });
      return answer(output.trimEnd());
    }
    case "ask": {
      const toolCall = {
        toolCallId: crypto.randomUUID(),
        title: words,
        kind: "execute",
        rawInput: { words },
      };
      const options = [
        { optionId: "yes", name: "Yes", kind: "allow_once" },
        { optionId: "no", name: "No", kind: "reject_once" },
      ];
      const { outcome } = await request("session/request_permission", { toolCall, options });
      return answer(outcome.optionId ?? outcome.outcome);
    }
    case "question": {
      const properties = { answer: { type: "string" } };
      const requestedSchema = { type: "object", properties, required: ["answer"] };
      const reply = await request("elicitation/create", { mode: "form", message: words, requestedSchema });
      return answer(reply.content?.answer ?? reply.action);
    }
    case "links":
      for (const { type, uri, name, description } of prompt) {
        if (type === "resource_link") await answer(`${name} at ${uri}: ${description}`);
      }
      return;
    case "slow":
      for (let step = 1; step <= Number(words); step++) {
        await answer(`step ${step}`);
        await delay(200, undefined, { signal });
      }
      return;
    default:
      if (prompt[0]?.text?.startsWith("Review of your changes")) return;
      return answer(`there is no command ${command}`);
  }
}
