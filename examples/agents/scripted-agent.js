#!/usr/bin/env node
/**
 * An agent that does what its messages say, word by word, to try out Chartroom and
 * for its tests. It speaks JSON lines (docs/agents.md) and needs only Node 20 or newer:
 *
 *     npx chartroom agent add scripted --form json-lines --command "node $PWD/examples/agents/scripted-agent.js"
 *
 * Each line of a message is a command; one message is one turn:
 *
 *     echo WORDS         outputs the words
 *     count              outputs how many messages it has received since it started
 *     edit PATH WORDS    adds a line to a file of the repository
 *     write PATH WORDS   replaces the content of a file; " / " separates its lines
 *     move PATH PATH     renames a file
 *     remove PATH        removes a file
 *     tool NAME WORDS    asks for a tool
 *     ask NAME KIND WORDS  asks for permission to use a tool of the kind for the words, and outputs the decision
 *     question NAME WORDS  asks a person, and outputs the answer
 *     image              outputs the type and size of each image of the message
 *     slow NUMBER        works for this number of steps of 200 ms each; messages in the meantime go into the turn,
 *                        and "enough" ends it
 *     spawn NUMBER WORDS starts this number of sub-agents with the words as their message, " / " between its
 *                        lines, and waits for their ends
 *     tell WORDS         sends the words to the run that started it
 *     wait SECONDS       ends the turn and asks to be woken
 *     goal STATUS        reports the state of its goal, such as completed
 *     resumable          reports that another process of it can continue the conversation
 *     show               outputs what it received when it started
 *     leave              ends its program after the turn
 *     fail WORDS         prints the words to stderr and ends with an error
 *
 * Of a review, it executes the lines that are commands, ignores the others, and says that it has read it.
 *
 * With the path of a file as its argument, it adds a line to that file for
 * everything that it receives, before it confirms it.
 */

import {
  appendFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const [, , logFile] = process.argv;
const STEP_MS = 200;

/** Received but not started. */
const waiting = [];
let wakeUp = () => {};
let isOver = false;
let leaves = false;
let start = {};
let count = 0;
/** What it waits for in addition to messages, by its own names: each wait repeats all of it. */
const waitedFor = new Map();
/** Callbacks for responses: about sub-agents by their keys, to requests by their names. */
const answered = new Map();

const say = (line) => void process.stdout.write(`${JSON.stringify(line)}\n`);
const text = (content) => say({ type: "text", content: `${content}\n` });

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const message = JSON.parse(line);
    if (message.type === "start") start = message;
    else if (message.type === "stop") process.exit(0);
    else if (message.type.startsWith("subagent_")) answered.get(message.key)?.(message);
    else if (message.type === "permission" || message.type === "answer") answered.get(message.id)?.(message);
    else waiting.push(message);
    wakeUp();
  })
  .on("close", () => {
    isOver = true;
    wakeUp();
  });

while (!leaves) {
  while (waiting.length === 0) {
    if (isOver) process.exit(0);
    await new Promise((resolve) => {
      wakeUp = resolve;
    });
  }
  await takeTurn(waiting.shift());
  const interests = [...waitedFor.values()];
  say(interests.length > 0 ? { type: "wait", interests } : { type: "turn_done" });
}
process.exit(0);

async function takeTurn(message) {
  confirm(message);
  for (const line of wordsOf(message).split("\n")) await obey(line, message);
  if (isReview(message)) text("I have read the review.");
}

function isReview(message) {
  return wordsOf(message).startsWith("Review of your changes");
}

function confirm(message) {
  if (logFile)
    appendFileSync(
      logFile,
      `${JSON.stringify({ run: start.runId, id: message.id, words: wordsOf(message) })}\n`,
    );
  if (message.type === "user_input") count++;
  if (message.type === "wake") waitedFor.delete(message.interestId);
  say({ type: "seen", id: message.id });
}

/** Returns a message as commands. A message that is not from a user is described in words. */
function wordsOf({ type, inputs, payload, from, interestId, control, action }) {
  switch (type) {
    case "user_input":
      return inputs.flatMap((input) => input.text ?? []).join("\n");
    case "agent_message":
      return `echo ${from} says ${payload}`;
    case "wake":
      return `echo woken by ${interestId}`;
    default:
      return `echo ${[control, action].filter(Boolean).join(" ")}`;
  }
}

async function obey(line, message) {
  const [, command = "", words = ""] = /^(\S*) ?(.*)$/.exec(line) ?? [];
  switch (command) {
    case "":
      return undefined;
    case "echo":
      return text(words);
    case "count":
      return text(count);
    case "edit":
      return edit(words);
    case "write": {
      const [, path = "", content = ""] = /^(\S*) ?(.*)$/.exec(words) ?? [];
      return writeFileSync(path, `${content.replaceAll(" / ", "\n")}\n`);
    }
    case "move": {
      const [from, to] = words.split(" ");
      return renameSync(from, to);
    }
    case "remove":
      return rmSync(words);
    case "tool":
      return tool(words);
    case "ask":
      return ask(words);
    case "question":
      return question(words);
    case "image":
      for (const { image } of message.inputs) {
        if (image) text(`${image.mimeType} of ${statSync(image.path).size} bytes`);
      }
      return undefined;
    case "slow":
      return workSlowly(Number(words));
    case "spawn":
      return spawn(words);
    case "tell":
      return say({ type: "agent_message", to: start.parentRunId, kind: "update", payload: words });
    case "wait":
      return waitFor(`timer-${count}`, { timer: `${Number(words)}s` });
    case "goal":
      return say({ type: "goal", status: words });
    case "resumable":
      return say({ type: "resumable" });
    case "show":
      return text(JSON.stringify(start));
    case "leave":
      leaves = true;
      return undefined;
    case "fail":
      process.stderr.write(`${words}\n`);
      return process.exit(1);
    default:
      if (isReview(message)) return undefined;
      return say({ type: "error", message: `there is no command ${command}` });
  }
}

function waitFor(id, interest) {
  waitedFor.set(id, { id, ...interest });
}

function edit(words) {
  const [, path = "", line = ""] = /^(\S*) ?(.*)$/.exec(words) ?? [];
  const kind = existsSync(path) ? "modified" : "created";
  const length = kind === "modified" ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
  appendFileSync(path, `${line}\n`);
  const from = kind === "modified" ? `a/${path}` : "/dev/null";
  const diff = `--- ${from}\n+++ b/${path}\n@@ -${length},0 +${length + 1} @@\n+${line}\n`;
  say({ type: "file_change", path, kind, diff });
}

function tool(words) {
  const [, name = "", asked = ""] = /^(\S*) ?(.*)$/.exec(words) ?? [];
  say({ type: "tool_request", id: `tool-${count}`, name, arguments: { words: asked } });
}

async function ask(words) {
  const [, id = "", kind = "", title = ""] = /^(\S*) ?(\S*) ?(.*)$/.exec(words) ?? [];
  const answer = new Promise((resolve) => answered.set(id, resolve));
  const options = [
    { id: "yes", name: "Yes", kind: "allow_once" },
    { id: "no", name: "No", kind: "reject_once" },
  ];
  say({ type: "permission_request", id, kind, title, tool: kind, input: { words: title }, options });
  const { allowed, option, reason } = await answer;
  text([id, allowed ? "is allowed" : "is not allowed", option, reason].filter(Boolean).join(": "));
}

async function question(words) {
  const [, id = "", message = ""] = /^(\S*) ?(.*)$/.exec(words) ?? [];
  const answer = new Promise((resolve) => answered.set(id, resolve));
  say({ type: "answer_request", id, message, schema: { type: "object" } });
  const reply = await answer;
  text(`${id}: ${reply.answered ? JSON.stringify(reply.answer) : `no answer: ${reply.reason ?? ""}`}`);
}

async function workSlowly(steps) {
  let isEnough = false;
  for (let step = 1; step <= steps && !isEnough; step++) {
    say({ type: "activity", text: `step ${step} of ${steps}` });
    text(`step ${step}`);
    await delay(STEP_MS);
    for (let message = waiting.shift(); message; message = waiting.shift()) {
      confirm(message);
      text(`steered: ${wordsOf(message)}`);
      isEnough ||= wordsOf(message) === "enough";
    }
  }
  say({ type: "usage", iterations: steps });
}

async function spawn(words) {
  const [, number = "0", prompt = ""] = /^(\d+) ?(.*)$/.exec(words) ?? [];
  for (let each = 1; each <= Number(number); each++) {
    const key = `${count}-${each}`;
    const answer = new Promise((resolve) => answered.set(key, resolve));
    say({ type: "subagent", key, name: `number ${each}`, prompt: prompt.replaceAll(" / ", "\n") });
    const { type, run, message } = await answer;
    if (type === "subagent_started") waitFor(key, { subAgentId: run });
    text(type === "subagent_started" ? `started ${key}` : `refused ${key}: ${message}`);
  }
}
