import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { MESSAGE_TYPES } from "../../src/runner/agent/agent-message-parsing.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT } from "../harness/program.ts";
import { countWaits, runningAgents } from "../harness/running-agents.ts";
import { temporaryFolder } from "../harness/server.ts";

const PATH = "docs/agents.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
const BLOCKS = fencedBlocks(PATH);

const { start } = runningAgents();

/** The names in the first column of the first table behind a heading. */
function namesUnder(heading: string): string[] {
  const [, text = ""] = PAGE.split(`${heading}\n`);
  const table = /(?:^\|.*\n)+/m.exec(text)?.[0] ?? "";
  return table.split("\n").flatMap((row) => {
    const [cell = ""] = row.split("|").slice(1);
    return [...cell.matchAll(/`(\w+)`/g)].map((match) => match[1] ?? "");
  });
}

describe("the page about agents", () => {
  test("has a whole agent of JSON lines that converses", async () => {
    const file = join(temporaryFolder(), "agent.mjs");
    writeFileSync(file, blockOf(BLOCKS, "JSON lines", "js"));
    const agent = await start({ command: [process.execPath, file] });
    for (const turn of [1, 2]) {
      agent.say(`input ${turn}`, `hello ${turn}`);
      await agent.until(() => countWaits(agent) === turn + 1);
    }
    expect(agent.output()).toEqual(["text: You said: hello 1", "text: You said: hello 2"]);
    expect(agent.seenInputIds()).toEqual(["input 1", "input 2"]);
  });

  test("names every type of line that an agent says, and no other", () => {
    expect(namesUnder("### What the agent says").slice(1).toSorted()).toEqual(MESSAGE_TYPES.toSorted());
  });

  test("names every variable that an agent's program finds, and no other", async () => {
    const agent = await start({
      command: ["sh", "-c", "cat > /dev/null; env | cut -d= -f1"],
      form: AgentForm.TEXT,
      secrets: [{ name: "KEY", value: "of a file", mount: { case: "filePath", value: "/run/key" } }],
      work: {
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        agentExecution: {
          id: "01900000-0000-7000-8000-00000000000c",
          spec: { codeContext: { pullRequest: { id: "7" } } },
        },
      },
    });
    agent.say("one", "x");
    await agent.until(() => countWaits(agent) === 2);
    const found = agent.output().join("").replaceAll("text: ", "").trim().split("\n");
    const named = namesUnder("## How the built-in runner runs an agent");
    expect(found.filter((name) => !/^(PWD|OLDPWD|SHLVL|_)$/.test(name)).toSorted()).toEqual(named.toSorted());
  });

  test("has recipes that run as written, with another program", async () => {
    const coder = join(temporaryFolder(), "coder");
    // It tells its arguments, and what it reads.
    writeFileSync(coder, `#!/bin/sh\nprintf '[%s]' "$@"; printf '('; cat; printf ')\\n'\n`, { mode: 0o755 });
    const recipes = BLOCKS.filter(
      ({ section, language }) => section === "Wire in a program" && language === "json",
    );
    const outputs: string[][] = [];
    for (const { text } of recipes) {
      const command = (JSON.parse(text) as string[]).map((word) => word.replaceAll("coder", coder));
      const agent = await start({ command, form: AgentForm.TEXT });
      for (const turn of [1, 2]) {
        agent.say(`input ${turn}`, `it's "${turn}" $HOME`);
        await agent.until(() => countWaits(agent) === turn + 1);
      }
      outputs.push(agent.output().map((line) => line.replaceAll("text: ", "").trim()));
    }
    const run = "[01900000-0000-7000-8000-00000000000c]";
    expect(outputs).toEqual([
      [`[--print](it's "1" $HOME)`, `[--print](it's "2" $HOME)`],
      [`[--prompt][it's "1" $HOME]()`, `[--prompt][it's "2" $HOME]()`],
      [`[--print][--session]${run}(it's "1" $HOME)`, `[--print][--resume]${run}(it's "2" $HOME)`],
      [`[--print](it's "1" $HOME)`, `[--print][--continue](it's "2" $HOME)`],
      [`[--print][--deny][[]](it's "1" $HOME)`, `[--print][--deny][[]](it's "2" $HOME)`],
    ]);
  });
});
