import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { commandFolder, path, run, shell } from "../../../test/harness/runner-command.ts";
import { commandEnvironment } from "./command.ts";

const folder = commandFolder();

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
      shell("env", { environment: commandEnvironment({ path }, folder, { P: "1 2" }) }),
    );
    const lines = variables.stdout
      .toString()
      .split("\n")
      .filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line));
    const ceiling = `GIT_CEILING_DIRECTORIES=${dirname(folder)}`;
    expect(lines.sort()).toEqual(
      ["", `HOME=${folder}`, "LANG=C.UTF-8", "P=1 2", `PATH=${path}`, ceiling].sort(),
    );
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

  test("ends the program when its reader fails, and the failure is reported", async () => {
    const failing = shell("echo $$; sleep 60", {
      onOutput: () => Promise.reject(new Error("the reader is gone")),
    });
    await expect(run(failing)).rejects.toThrow("the reader is gone");
  });
});
