import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { ROOT, runProgram, testUnless } from "../harness/program.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

const hasLibrary = existsSync("/usr/include/seccomp.h");

testUnless(hasLibrary ? undefined : "there is no libseccomp-dev")(
  "the filters that are committed are those that the script makes",
  async () => {
    const folder = temporaryFolder();
    const made = await runProgram("sh", [join(ROOT, "scripts/seccomp/compile.sh"), folder]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    for (const name of ["x86_64.bpf", "aarch64.bpf"]) {
      const committed = readFileSync(join(ROOT, "src/runner/isolation/seccomp", name));
      expect(readFileSync(join(folder, name)).equals(committed)).toBe(true);
    }
  },
);

test("a filter has whole instructions", () => {
  for (const name of ["x86_64.bpf", "aarch64.bpf"]) {
    const { length } = readFileSync(join(ROOT, "src/runner/isolation/seccomp", name));
    expect([length % 8, length > 400]).toEqual([0, true]);
  }
});
