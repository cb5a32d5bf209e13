import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { AGENT_PRESETS, type AgentPreset } from "../../src/commands/agent-presets.ts";
import { closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { runCommand, startServer, stopAll } from "../harness/server.ts";
import { BUILD_MS, npmPrograms } from "./toolchain.ts";

const REASON = "skipped because it installs 400 MB from the npm registry, which only CI does";

/** The first known agent that needs neither a model nor a key to begin. */
const PRESET = AGENT_PRESETS.find(({ opensWithoutKey }) => opensWithoutKey) as AgentPreset;

const inCi = process.env.CI ? describe : describe.skip; // It installs 400 MB from the network, which only CI does.
inCi(`an agent that people use${process.env.CI ? "" : `: ${REASON}`}`, () => {
  let programs: string;
  beforeAll(async () => {
    programs = await npmPrograms(PRESET.install.split(" ").at(-1) ?? "");
  }, BUILD_MS);
  afterAll(async () => {
    closeConversations();
    await stopRunners();
    await stopAll();
  });

  test(
    "opens a session without a model",
    async () => {
      const server = await startServer();
      const [program = "", ...args] = JSON.parse(PRESET.command);
      // Without a network, so that it calls nobody.
      const alone = [
        "unshare",
        "--map-root-user",
        "--net",
        process.execPath,
        join(programs, program),
        ...args,
      ];
      const options = ["--form", PRESET.form, "--command", JSON.stringify(alone), "--default"];
      const added = await runCommand(["agent", "add", "known", ...options, "--data-dir", server.dataDir]);
      expect([added.code, added.stderr]).toEqual([0, ""]);
      await startRegisteredRunner(server);
      const conversation = await startConversation(server);
      // It waits once initialize and session/new are done, and the mode is chosen.
      await conversation.untilPhase("WAITING_FOR_INPUT");
      expect(conversation.output()).toEqual([]);
      await conversation.stop();
      const { status } = await conversation.untilPhase("STOPPED");
      expect(status.failureReason ?? "AGENT_EXECUTION_FAILURE_REASON_UNSPECIFIED").toBe(
        "AGENT_EXECUTION_FAILURE_REASON_UNSPECIFIED",
      );
    },
    BUILD_MS,
  );
});
