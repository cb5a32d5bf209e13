import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import {
  AgentExecutionFailureReason,
  AgentGoalStatus,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { RUNNER_REASONS } from "../../src/domain/agent/agent-failure.ts";
import { AGENT_TRANSITIONS } from "../../src/domain/agent/agent-transitions.ts";
import { GOAL_TRANSITIONS } from "../../src/domain/agent/goal/agent-goal.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/agents.md"), "utf8");

/** The lines of the diagram under a heading. */
function diagramOf(heading: string): string[] {
  const section = PAGE.split(`## ${heading}\n`)[1]?.split(/^#/m)[0] ?? "";
  const diagram = /```mermaid\nstateDiagram-v2\n(.*?)```/s.exec(section)?.[1] ?? "";
  return diagram.split("\n").flatMap((line) => line.trim() || []);
}

describe("the diagram of the phases of a run", () => {
  test("shows the moves of the table and no others", () => {
    const moves = AGENT_TRANSITIONS.map(([from, event, to]) => `${Phase[from]} --> ${Phase[to]}: ${event}`);
    const shown = diagramOf("Phases").filter((line) => !line.includes("[*]"));
    expect(shown.toSorted()).toEqual(moves.toSorted());
  });

  test("begins where every run begins, and ends where nothing follows", () => {
    const left = new Set(AGENT_TRANSITIONS.map(([from]) => from));
    const finals = new Set(AGENT_TRANSITIONS.map(([, , to]) => to).filter((phase) => !left.has(phase)));
    const ends = [...finals].map((phase) => `${Phase[phase]} --> [*]`);
    const shown = diagramOf("Phases").filter((line) => line.includes("[*]"));
    expect(shown.toSorted()).toEqual(["[*] --> PENDING", ...ends].toSorted());
  });
});

test("the page explains each event of the table", () => {
  const section = PAGE.split("## Phases\n")[1]?.split(/^## /m)[0] ?? "";
  const explained = section
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .flatMap((line) => [...(line.split(":")[0] ?? "").matchAll(/\*\*(\w+)\*\*/g)].map((match) => match[1]));
  expect(explained.toSorted()).toEqual([...new Set(AGENT_TRANSITIONS.map(([, event]) => event))].toSorted());
});

test("the page has every failure reason that the service answers, and no other", () => {
  const section = PAGE.split("## Phases\n")[1]?.split(/^## /m)[0] ?? "";
  const listed = [...section.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
  const { UNSPECIFIED, INTERNAL } = AgentExecutionFailureReason;
  const answered = Object.entries(AgentExecutionFailureReason).flatMap(([name, number]) =>
    typeof number === "number" && number !== UNSPECIFIED && number !== INTERNAL ? [name] : [],
  );
  expect(listed.toSorted()).toEqual(answered.toSorted());
});

test("the page has every word of runners that means another failure than the agent's own", () => {
  const listed = [...PAGE.matchAll(/^\| `([a-z_]+)` \| `([A-Z_]+)` \|$/gm)].map((match) => match.slice(1));
  const known = Object.entries(RUNNER_REASONS).map(([word, reason]) => [
    word,
    AgentExecutionFailureReason[reason],
  ]);
  expect(listed.toSorted()).toEqual(known.toSorted());
});

test("the page has every order about a goal, with the states that it acts in and leads to", () => {
  const section = PAGE.split("## Goals\n")[1]?.split(/^## /m)[0] ?? "";
  const listed = [...section.matchAll(/^\| `(\w+)` \| ([A-Z_, ]+) \| ([A-Z]+|no goal) \|$/gm)].flatMap(
    ([, event, from = "", to]) => from.split(", ").map((state) => `${state} --> ${to}: ${event}`),
  );
  const moves = GOAL_TRANSITIONS.map(
    ([from, event, to]) =>
      `${AgentGoalStatus[from]} --> ${to === AgentGoalStatus.UNSPECIFIED ? "no goal" : AgentGoalStatus[to]}: ${event}`,
  );
  expect(listed.toSorted()).toEqual(moves.toSorted());
});

test("the page names operations that are in the contract", () => {
  const known = new Set(CONTRACT.flatMap(({ methods }) => methods.map(({ name }) => name)));
  const named = [...PAGE.matchAll(/`((?:Start|Get|List|Stop|Delete|Send|Watch|Stream|Report)[A-Z]\w+)`/g)];
  expect(named.map((match) => match[1]).filter((name) => !known.has(name ?? ""))).toEqual([]);
  expect(named.length).toBeGreaterThan(3);
});
