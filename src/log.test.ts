import { spawn } from "node:child_process";
import { once } from "node:events";
import { text as textOf } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { createLog } from "./log.ts";

const SECRET = "made-up-credential";

/** Returns what a separate process wrote to its standard error, which includes its log. */
async function linesOf(code: string): Promise<{ readonly text: string; readonly lines: object[] }> {
  const program = `
    import { createLog, flushLog } from "./src/log.ts";
    process.on("exit", flushLog);
    const log = createLog("info");
    ${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [text] = await Promise.all([textOf(child.stderr), once(child, "exit")]);
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  return { text, lines: lines.map((line) => JSON.parse(line)) };
}

test("a line is its level, its time, its facts and its message", async () => {
  const { lines } = await linesOf(`log.info({ count: 1, name: 'a "quoted"' }, "said");`);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(lines).toEqual([{ level: "info", time, count: 1, name: 'a "quoted"', msg: "said" }]);
});

test("no credential inside a fact is written, at any level, and among plain facts too", async () => {
  const facts = {
    plain: 1,
    req: { headers: { authorization: SECRET, accept: "kept" } },
    call: { authorization: SECRET, token: { value: SECRET, id: "kept" } },
    host: { secret: SECRET },
  };
  const error = `Object.assign(new Error("broken"), { secret: "${SECRET}" })`;
  const { text, lines } = await linesOf(`
    const facts = ${JSON.stringify(facts)};
    for (const level of ["info", "warn", "error"]) log[level](facts, "said");
    log.error({ plain: 1, err: ${error} }, "failed");
  `);
  expect(lines).toHaveLength(4);
  expect(text).not.toContain(SECRET);
  expect(lines[0]).toMatchObject({
    plain: 1,
    req: { headers: { accept: "kept" } },
    call: { token: { id: "kept" } },
  });
  expect(lines[3]).toMatchObject({ level: "error", plain: 1, err: { type: "Error", message: "broken" } });
});

test("logs that are written elsewhere than to standard error do not mix their lines", async () => {
  const [ofOne, ofOther]: [string[], string[]] = [[], []];
  const one = createLog("info", (lines) => void ofOne.push(lines));
  const other = createLog("info", (lines) => void ofOther.push(lines));
  one.info({}, "of the one");
  other.warn({}, "of the other");
  expect([ofOne, ofOther]).toEqual([[], [expect.stringMatching(/^\{"level":"warn",.*of the other"\}\n$/)]]);
  await setImmediate();
  expect(ofOne).toEqual([expect.stringMatching(/^\{"level":"info",.*of the one"\}\n$/)]);
});

describe("no line is lost by a process that ends in the turn in which it was logged", () => {
  const logged = 'for (const turn of [1, 2, 3]) { log.info({ turn }, "said"); await 0; }';

  test.each([
    ["by itself", ""],
    ["by process.exit", "process.exit(1);"],
    ["by an uncaught exception", 'throw new Error("broken");'],
    ["by a rejection that nobody handles", 'await Promise.reject(new Error("broken"));'],
  ])("%s", async (_, end) => {
    const { lines } = await linesOf(`${logged} ${end}`);
    expect(lines).toMatchObject([{ turn: 1 }, { turn: 2 }, { turn: 3 }]);
  });

  test("by a signal that it does not catch, of what was logged before or with a warning or an error", async () => {
    const { lines } = await linesOf(`
      log.info({ turn: 1 }, "said");
      await new Promise(setImmediate);
      log.info({ turn: 2 }, "said");
      log.warn({ turn: 2 }, "said");
      log.error({ turn: 2 }, "said");
      process.kill(process.pid, "SIGKILL");
    `);
    expect(lines).toMatchObject([
      { level: "info", turn: 1 },
      { level: "info", turn: 2 },
      { level: "warn" },
      { level: "error" },
    ]);
  });
});
