import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "@jest/globals";
import { type Command, type CommandResult, cleanEnvironment, commandRunner } from "./command.ts";
import type { SignalGroup } from "./process-group.ts";

const folder = mkdtempSync(join(tmpdir(), "chartroom-command-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const signalGroup: SignalGroup = (groupId, signal) => process.kill(-groupId, signal);
const path = process.env.PATH ?? "";
const run = commandRunner(signalGroup, { graceMs: 300 });

function shell(command: string, more: Partial<Command> = {}): Command {
  return {
    program: "sh",
    args: ["-c", command],
    folder,
    environment: cleanEnvironment({ path }, folder),
    keepBytes: 1_000,
    ...more,
  };
}

/** Runs a command and stops it when it has written its first line. */
async function stoppedAfterLine(
  command: string,
  look: (line: string) => void = () => undefined,
): Promise<{ readonly line: string; readonly result: CommandResult; readonly tookMs: number }> {
  const stop = new AbortController();
  let text = "";
  let stoppedAt = 0;
  const result = await run(
    shell(command, {
      signal: stop.signal,
      onOutput: (bytes) => {
        text += bytes;
        if (!text.includes("\n") || stop.signal.aborted) return;
        look(text);
        stoppedAt = performance.now();
        stop.abort();
      },
    }),
  );
  return { line: text.split("\n")[0] ?? "", result, tookMs: performance.now() - stoppedAt };
}

const isRunning = (pid: number) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

describe("a program that ends", () => {
  test("tells its exit code and what it wrote", async () => {
    const result = await run(shell("printf out; printf err >&2; exit 7"));
    expect(result).toEqual({
      exit: 7,
      signal: null,
      timedOut: false,
      stopped: false,
      stdout: Buffer.from("out"),
      outputTruncated: false,
    });
  });

  test("can be spoken with while it runs", async () => {
    const { promise, resolve } = Promise.withResolvers<Writable>();
    let answers = "";
    const result = await run(
      shell('while read line; do echo "got $line"; done', {
        input: (stdin) => {
          resolve(stdin);
          stdin.write("one\n");
        },
        onOutput: async (bytes) => {
          answers += bytes;
          const stdin = await promise;
          if (answers === "got one\n") stdin.write("two\n");
          else stdin.end();
        },
      }),
    );
    expect([result.exit, answers]).toEqual([0, "got one\ngot two\n"]);
  });

  test("need not read what is written to it", async () => {
    const result = await run(
      shell("exec 0<&-; sleep 0.2", { input: (stdin) => void stdin.write("x".repeat(1_000_000)) }),
    );
    expect(result).toMatchObject({ exit: 0, stopped: false });
  });

  test("by a signal of its own tells the signal", async () => {
    expect(await run(shell("kill -USR1 $$"))).toMatchObject({
      exit: null,
      signal: "SIGUSR1",
      stopped: false,
    });
  });

  test("sees its arguments and variables as they were given, and nothing else", async () => {
    const text = "$(id) `id` 'a' \"b\" * ;\n$P";
    const result = await run({
      ...shell(""),
      program: "printf",
      args: ["%s|", text, ""],
    });
    expect(result.stdout.toString()).toBe(`${text}||`);
    const variables = await run(
      shell("env", { environment: cleanEnvironment({ path }, folder, { P: "1 2" }) }),
    );
    const lines = variables.stdout
      .toString()
      .split("\n")
      .filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line));
    expect(lines.sort()).toEqual(["", `HOME=${folder}`, "LANG=C.UTF-8", "P=1 2", `PATH=${path}`].sort());
  });

  test("reads what it is given, to the end, and nothing when it is given nothing", async () => {
    expect((await run(shell("cat", { input: Buffer.from("a\0b") }))).stdout).toEqual(Buffer.from("a\0b"));
    expect(await run(shell("cat"))).toMatchObject({ exit: 0, stdout: Buffer.alloc(0) });
  });

  test("need not read what it is given", async () => {
    expect(await run(shell("exec 0<&-; exit 0", { input: Buffer.alloc(1_000_000) }))).toMatchObject({
      exit: 0,
    });
  });

  test("runs in its folder", async () => {
    expect((await run(shell("pwd -P"))).stdout.toString().trim()).toBe(folder);
  });
});

describe("a program that cannot be started", () => {
  test.each([
    ["it is not there", { program: "no-such-program" }, /no-such-program could not be started: .*ENOENT/],
    ["its folder is not there", { folder: join(folder, "absent") }, /ENOENT/],
    ["its argument is too long", { args: ["-c", "x".repeat(3_000_000)] }, /E2BIG/],
  ])("is a failure of the work when %s", async (_, more, message) => {
    await expect(run(shell("true", more))).rejects.toMatchObject({
      reason: "command_not_started",
      message: expect.stringMatching(message),
    });
  });

  test("is not quoted when a value cannot be passed on", async () => {
    const secret = "top-secret\0";
    const failure = await run(shell("true", { environment: { SECRET: secret } })).catch((error) => error);
    expect(failure.reason).toBe("command_not_started");
    expect(failure.message).not.toContain("top-secret");
  });
});

describe("what a program writes", () => {
  test.each([
    [9, true],
    [10, false],
    [11, false],
  ])("is kept up to a limit: 10 bytes with a limit of %d", async (keepBytes, outputTruncated) => {
    const { stdout, ...result } = await run(shell("printf 0123456789", { keepBytes }));
    expect([stdout.toString(), result.outputTruncated]).toEqual([
      "0123456789".slice(0, keepBytes),
      outputTruncated,
    ]);
  });

  test("is not kept on standard error", async () => {
    expect((await run(shell("printf err >&2"))).stdout.length).toBe(0);
  });

  test("is handed on whole when it is 10 MiB, and only its beginning is kept", async () => {
    let bytes = 0;
    const result = await run(
      shell("head -c 10485760 /dev/zero", {
        onOutput: (piece) => {
          bytes += piece.length;
        },
      }),
    );
    expect(bytes).toBe(10_485_760);
    expect([result.stdout.length, result.outputTruncated, result.exit]).toEqual([1_000, true, 0]);
  });

  test("tells which stream it came from", async () => {
    const streams = { stdout: "", stderr: "" };
    await run(
      shell("echo a; echo b >&2; echo c", {
        onOutput: (bytes, stream) => {
          streams[stream] += bytes;
        },
      }),
    );
    expect(streams).toEqual({ stdout: "a\nc\n", stderr: "b\n" });
  });

  test("waits in the program while the reader is busy", async () => {
    const marker = join(folder, "written");
    let release: () => void = () => undefined;
    const busy = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = Promise.withResolvers<void>();
    const running = run(
      shell(`head -c 2000000 /dev/zero; touch ${marker}`, {
        onOutput: () => {
          first.resolve();
          return busy;
        },
      }),
    );
    await first.promise;
    // The pipe and Node's buffer hold far less than what is written.
    await delay(200);
    expect(existsSync(marker)).toBe(false);
    release();
    expect((await running).exit).toBe(0);
    expect(existsSync(marker)).toBe(true);
  });

  test("ends the program when its reader fails, and the failure is told", async () => {
    const failing = shell("echo $$; sleep 60", {
      onOutput: () => Promise.reject(new Error("the reader is gone")),
    });
    await expect(run(failing)).rejects.toThrow("the reader is gone");
  });
});

describe("a program that hangs", () => {
  test("is ended at its time", async () => {
    const result = await run(shell("sleep 60", { timeoutMs: 50 }));
    expect(result).toMatchObject({ exit: null, signal: "SIGTERM", timedOut: true, stopped: false });
  });

  test("may end in its own way when it is told to", async () => {
    const { result } = await stoppedAfterLine("trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait");
    expect(result).toMatchObject({ exit: 3, signal: null, stopped: true });
    expect(result.stdout.toString()).toBe("up\nbye\n");
  });

  test("is ended when the caller says so", async () => {
    const { result } = await stoppedAfterLine("echo up; sleep 60");
    expect(result).toMatchObject({ exit: null, signal: "SIGTERM", timedOut: false, stopped: true });
  });

  test("is ended when the caller says so although nobody takes what it wrote", async () => {
    const stop = new AbortController();
    const result = await run(
      shell("echo up; sleep 60", {
        signal: stop.signal,
        onOutput: () => {
          stop.abort();
          return new Promise(() => undefined);
        },
      }),
    );
    expect(result.stopped).toBe(true);
  });

  test("is not even started when the caller has said so before", async () => {
    const marker = join(folder, "started");
    const result = await run(shell(`touch ${marker}`, { signal: AbortSignal.abort() }));
    expect(result).toMatchObject({ exit: null, signal: null, stopped: true });
    expect(existsSync(marker)).toBe(false);
  });

  test("has no time limit when none is given, and none that is beyond a timer rings at once", async () => {
    expect(await run(shell("sleep 0.1", { timeoutMs: 2 ** 31 }))).toMatchObject({ exit: 0, timedOut: false });
  });
});

describe("the group of a program ends with it", () => {
  test("a grandchild that ignores SIGTERM is killed after the grace", async () => {
    const { line, result, tookMs } = await stoppedAfterLine(
      `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait`,
      (grandchild) => expect(isRunning(Number(grandchild))).toBe(true),
    );
    expect(result).toMatchObject({ stopped: true, signal: "SIGTERM" });
    expect(isRunning(Number(line))).toBe(false);
    expect(tookMs).toBeGreaterThanOrEqual(300);
  });

  test("a child that forks to the background and exits takes what it forked along", async () => {
    const result = await run(shell("sleep 60 & echo $!"));
    expect(result).toMatchObject({ exit: 0, signal: null, timedOut: false, stopped: false });
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("a background child that ignores SIGTERM and holds the pipes does not hold the result", async () => {
    const result = await run(shell(`sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $!; exit 5`));
    expect(result.exit).toBe(5);
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("what is stopped by a signal is killed too", async () => {
    const result = await run(
      shell(
        "sh -c 'kill -STOP $$' & echo $!; until grep -q '^State:.T' /proc/$!/status; do sleep 0.01; done",
      ),
    );
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("one that left for a session of its own stays, and its open pipe does not hold the result", async () => {
    const result = await run(
      shell(
        "setsid sh -c 'echo $$ > stray; exec sleep 60' & until [ -s stray ]; do sleep 0.01; done; cat stray",
      ),
    );
    const stray = Number(result.stdout);
    expect(result.exit).toBe(0);
    expect(isRunning(stray)).toBe(true);
    process.kill(stray, "SIGKILL");
  });
});
