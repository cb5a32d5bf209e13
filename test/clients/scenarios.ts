import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect, test } from "@jest/globals";
import { addOrganization } from "../harness/organization.ts";
import type { ReachableServer } from "../harness/server.ts";
import { type Relay, startRelay } from "./relay.ts";

/**
 * A program that runs one scenario: it takes an address and a scenario's name, and prints a result
 * as JSON.
 */
export interface ScenarioProgram {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program and its arguments before the address. */
  readonly command: readonly [string, ...string[]];
}

/** How results appear in a client's language and protocol. */
export interface Expectations {
  /** How the client may see that a connection was cut. */
  readonly cut: RegExp;
  /** True when it checks requests by the rules of the contract. */
  readonly checksRules: boolean;
}

/** Longer than the deadline of every call in the programs. */
const SCENARIO_MS = 170_000;

/** The violation of a project id that is not a UUID. */
const VIOLATIONS = [{ field: "project_id", rule: "string.uuid" }];

/** Codes have other cases and separators in each language. */
const plainCode = (code: string) => code.replaceAll("_", "").toLowerCase();

/** Defines the tests of a client; the server and the program are fetched when a test runs. */
export function testScenarios(
  server: () => ReachableServer,
  program: () => ScenarioProgram,
  { cut, checksRules }: Expectations,
): void {
  const run = (scenario: string) => runScenario(server(), program(), scenario);

  test("creates a project", async () => {
    expect((await run("create")).result).toEqual({ name: "created" });
  });

  test("walks a list over three pages", async () => {
    const pages = [["listed-0", "listed-1"], ["listed-2", "listed-3"], ["listed-4"]];
    expect((await run("list")).result).toEqual({ pages });
  });

  test("decodes the reason and the violations of an error", async () => {
    const { code, ...details } = (await run("error")).result;
    expect(plainCode(code)).toBe("invalidargument");
    expect(details).toEqual({ reason: "ERROR_REASON_CONSTRAINT_VIOLATED", violations: VIOLATIONS });
  });

  if (checksRules)
    test("finds the same violations itself by the official package of the rules", async () => {
      expect((await run("rules")).result).toEqual({ violations: VIOLATIONS });
    });

  test("resumes a stream that was cut, without a loss and without a repetition", async () => {
    const { result } = await run("stream");
    expect(result.cut).toMatch(cut);
    const events: { sequence: number; resourceId: string }[] = result.events;
    const sequences = events.map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other));
    const ofProjects = events.map((each) => each.resourceId).filter((id) => result.projects.includes(id));
    expect(ofProjects).toEqual(result.projects);
  });

  test("is freed by its deadline", async () => {
    expect(plainCode((await run("deadline")).result.code)).toBe("deadlineexceeded");
  });

  test("sends and takes compressed messages", async () => {
    const { result, sentBytes, receivedBytes } = await run("compression");
    expect(result).toEqual({ characters: 100_000 });
    expect(sentBytes).toBeLessThan(20_000);
    expect(receivedBytes).toBeLessThan(20_000);
  });

  test("skips a field that its older contract does not have", async () => {
    expect((await run("unknown")).result).toEqual({ name: "older", unknownFields: true });
  });
}

/**
 * Runs a scenario through a relay, in its own organization, and cuts its connections when it prints
 * `watching`; then it gets a line.
 *
 * @param prepare is called with the relay and the token before the program begins
 */
export async function runScenario(
  server: ReachableServer,
  { cwd, env, command }: ScenarioProgram,
  scenario: string,
  prepare: (relay: Relay, token: string) => void = () => {},
) {
  const { token } = await addOrganization(server, "A team with a client");
  const relay = await startRelay(server.port);
  try {
    prepare(relay, token);
    const [program, ...args] = command;
    const child = spawn(program, [...args, relay.url, scenario], {
      cwd,
      env: { ...env, TOKEN: token },
      timeout: SCENARIO_MS,
      killSignal: "SIGKILL",
    });
    const closed = once(child, "close");
    const stderr = text(child.stderr);
    let last = "";
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === "watching") {
        relay.cut();
        child.stdin.end("cut\n");
      }
      last = line;
    }
    const [code] = await closed;
    if (code !== 0) throw new Error(`${scenario} ended with ${code}:\n${last}\n${await stderr}`);
    return {
      result: JSON.parse(last),
      sentBytes: relay.sentBytes(),
      receivedBytes: relay.receivedBytes(),
    };
  } finally {
    await relay.stop();
  }
}
