/**
 * An agent of the Agent Client Protocol that follows commands, as a program: each line of a prompt is a
 * command. Its first argument is a JSON object of {@link Options}. It keeps the prompts of its sessions in
 * files of its HOME, by which a later process goes on with them.
 */
import { appendFileSync, copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type AgentContext,
  agent,
  ndJsonStream,
  RequestError,
  type SessionConfigOption,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";

interface Options {
  readonly auth?: boolean;
  readonly load?: boolean;
  readonly resume?: boolean;
  readonly fork?: boolean;
  readonly images?: boolean;
  /** True to open no session, and to say what it was given. */
  readonly complains?: boolean;
  /** True to take no MCP servers with a URL. */
  readonly commandsOnly?: boolean;
  readonly version?: number;
  readonly modes?: readonly string[];
  readonly config?: boolean;
}

const options: Options = JSON.parse(process.argv[2] ?? "{}");
const history = (sessionId: string) => join(process.env.HOME ?? "/", `${sessionId}.history`);
const log = (what: string, value: unknown) => said.push(`${what} ${JSON.stringify(value)}`);

/** What the client asked for, which `show` answers. */
const said: string[] = [];
let turn = new AbortController();
let model = "one";

const configOptions = (): SessionConfigOption[] =>
  options.config
    ? [
        {
          id: "llm",
          name: "Model",
          category: "model",
          type: "select",
          currentValue: model,
          options: ["one", "two", "three"].map((value) => ({ value, name: value.toUpperCase() })),
        },
        {
          id: "think",
          name: "Thinking",
          category: "thought_level",
          type: "select",
          currentValue: "low",
          options: [
            {
              group: "g",
              name: "G",
              options: [
                { value: "low", name: "Low" },
                { value: "xhigh", name: "X" },
              ],
            },
          ],
        },
        { id: "fast", name: "Fast", type: "boolean", currentValue: false },
      ]
    : [];

const opened = () => ({
  ...(options.modes && {
    modes: {
      currentModeId: options.modes[0] ?? "",
      availableModes: options.modes.map((id) => ({ id, name: id.toUpperCase() })),
    },
  }),
  configOptions: configOptions(),
});

/** The library offers no types for what the first version of the protocol has as unstable. */
const parseFork = (params: unknown) =>
  params as { readonly sessionId: string; readonly mcpServers: readonly unknown[] };

const app = agent({ name: "scripted" })
  .onRequest("initialize", ({ params }) => {
    log("initialize", [
      params.protocolVersion,
      params.clientCapabilities?.fs,
      params.clientCapabilities?.terminal,
    ]);
    return {
      protocolVersion: options.version ?? 1,
      authMethods: options.auth ? [{ id: "key", name: "A key", description: "of the model" }] : [],
      agentCapabilities: {
        loadSession: options.load ?? false,
        promptCapabilities: { image: options.images ?? false },
        mcpCapabilities: { http: !options.commandsOnly },
        sessionCapabilities: {
          ...(options.resume && { resume: {} }),
          ...(options.fork && { fork: {} }),
        },
      },
    };
  })
  .onRequest("session/new", ({ params }) => {
    if (options.auth) throw RequestError.authRequired();
    log("new", params.mcpServers);
    if (options.complains) throw new RequestError(-32_603, `no use for ${JSON.stringify(params.mcpServers)}`);
    return { sessionId: `session-${process.pid}`, ...opened() };
  })
  .onRequest("session/resume", ({ params }) => {
    if (!existsSync(history(params.sessionId))) throw RequestError.sessionNotFound(params.sessionId);
    log("resume", params.mcpServers);
    return opened();
  })
  .onRequest("session/fork", parseFork, ({ params }) => {
    if (!existsSync(history(params.sessionId))) throw RequestError.sessionNotFound(params.sessionId);
    const sessionId = `fork-${process.pid}`;
    copyFileSync(history(params.sessionId), history(sessionId));
    log("fork", params.mcpServers);
    return { sessionId, ...opened() };
  })
  .onRequest("session/load", async ({ params, client }) => {
    if (!existsSync(history(params.sessionId))) throw RequestError.sessionNotFound(params.sessionId);
    for (const content of readFileSync(history(params.sessionId), "utf8").split("\n")) {
      const text = { type: "text" as const, text: content };
      for (const sessionUpdate of ["user_message_chunk", "agent_message_chunk"] as const)
        await client.notify("session/update", {
          sessionId: params.sessionId,
          update: { sessionUpdate, content: text },
        });
    }
    log("load", params.mcpServers);
    return opened();
  })
  .onRequest("session/set_mode", ({ params }) => {
    log("mode", params.modeId);
    return {};
  })
  .onRequest("session/set_config_option", ({ params }) => {
    log("config", [params.configId, params.value]);
    if (params.configId === "llm") model = String(params.value);
    return { configOptions: configOptions() };
  })
  .onNotification("session/cancel", () => turn.abort())
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId } = params;
    turn = new AbortController();
    for (const block of params.prompt) {
      if (block.type === "image") log("image", [block.mimeType, Buffer.from(block.data, "base64").length]);
      if (block.type !== "text") continue;
      appendFileSync(history(sessionId), `${block.text}\n`);
      for (const line of block.text.split("\n")) {
        const reason = await act(client, sessionId, line);
        if (reason) return { stopReason: reason };
      }
    }
    return { stopReason: "end_turn" };
  });

app.connect(
  ndJsonStream(
    Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
    Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
  ),
);

type Reason = "cancelled" | "refusal" | "max_tokens" | undefined;

/** Does what a line says; returns why the turn ends, if it does. */
async function act(client: AgentContext, sessionId: string, line: string): Promise<Reason> {
  const [, command = "", rest = ""] = /^(\S*) ?(.*)$/s.exec(line) ?? [];
  const update = (change: SessionUpdate) => client.notify("session/update", { sessionId, update: change });
  const say = (text: string) =>
    update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  switch (command) {
    case "echo":
      for (const character of `${rest}\n`) await say(character);
      return undefined;
    case "show":
      await say(said.join("\n"));
      return undefined;
    case "show-hex":
      await say(Buffer.from(said.join("\n")).toString("hex"));
      return undefined;
    case "env":
      await say(process.env[rest] ?? "");
      return undefined;
    case "remember":
      await say(readFileSync(history(sessionId), "utf8").split("\n")[0] ?? "");
      return undefined;
    case "recall":
      await say(readFileSync(history(sessionId), "utf8").trimEnd().split("\n").join(", "));
      return undefined;
    case "update":
      await update(JSON.parse(rest));
      return undefined;
    case "end":
      return rest as Reason;
    case "throw":
      throw new Error(rest);
    case "exit":
      process.exit(Number(rest));
      return undefined;
    case "slow":
      await say("working\n");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }));
      await say("cancelled\n");
      return "cancelled";
    case "call": {
      const [method, params] = JSON.parse(rest);
      const answer = await client
        .request<unknown>(method, { sessionId, ...params })
        .catch((error: Error) => `refused: ${error.message}`);
      await say(`${JSON.stringify(answer ?? null)}\n`);
      return undefined;
    }
    case "run": {
      const terminal = await client.createTerminal({ sessionId, ...JSON.parse(rest) });
      const toolCallId = `run-${terminal.id}`;
      const content = [{ type: "terminal" as const, terminalId: terminal.id }];
      await update({
        sessionUpdate: "tool_call",
        toolCallId,
        title: "run",
        kind: "execute",
        status: "in_progress",
      });
      const exit = await terminal.waitForExit();
      await update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
      await terminal.release();
      await say(`${exit.exitCode} ${exit.signal}\n`);
      return undefined;
    }
    default:
      return undefined;
  }
}
