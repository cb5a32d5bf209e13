/**
 * An agent of JSON lines that can fork its conversations, as a program. It keeps the words of each conversation in a
 * file of its HOME and answers each message with all words so far. `slow` never ends its turn.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

interface Said {
  readonly runId: string;
  readonly id: string;
  readonly words: string;
}

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const fileOf = (conversationId: string) => join(process.env.HOME ?? "/", `${conversationId}.json`);
const read = (conversationId: string): Said[] =>
  existsSync(fileOf(conversationId)) ? JSON.parse(readFileSync(fileOf(conversationId), "utf8")) : [];

let conversation = { runId: "", conversationId: "" };
let said: Said[] = [];

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  if (line.type === "stop") process.exit(0);
  if (line.type === "start") {
    conversation = line;
    say({ type: "forkable" });
    said = line.forkedFrom && line.starts === 1 ? forkOf(line.forkedFrom) : read(line.conversationId);
  }
  if (line.type !== "user_input") continue;
  say({ type: "seen", id: line.id });
  const words = line.inputs.map((input: { readonly text: string }) => input.text).join(" ");
  if (words === "slow") {
    say({ type: "text", content: "working" });
    continue;
  }
  said.push({ runId: conversation.runId, id: line.id, words });
  writeFileSync(fileOf(conversation.conversationId), JSON.stringify(said));
  say({ type: "text", content: said.map((each) => each.words).join(", ") });
  say({ type: "turn_done" });
}

function forkOf(from: {
  readonly conversationId: string;
  readonly runId: string;
  readonly inputId: string;
}): Said[] {
  const all = read(from.conversationId);
  const last = all.findIndex(({ runId, id }) => runId === from.runId && id === from.inputId);
  if (from.inputId !== "" && last < 0) {
    process.stderr.write("there is no such turn\n");
    process.exit(1);
  }
  return all.slice(0, last + 1);
}
