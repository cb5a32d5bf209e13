import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "@jest/globals";
import { temporaryFolder } from "./server.ts";

/** A disk that fails to force one file, once, as the kernel tells a loss: the next force says that all is well. */
export interface FailingDisk {
  /** What a process needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The next force of the file fails. */
  fail(): void;
}

/** Stands before the C library: a force of the file fails once after the trigger is there. */
const LIBRARY = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strcmp(path, getenv("FAILING_FILE")) != 0) return 0;
  if (unlink(getenv("FAILING_TRIGGER")) != 0) return 0;
  errno = EIO;
  return 1;
}

int fsync(int file) {
  if (fails(file)) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
  if (fails(file)) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
`;

/** Makes a disk that fails to force a file, for processes of Linux. */
export function failingDisk(file: string): FailingDisk {
  const folder = temporaryFolder();
  const [source, library, trigger] = ["fail.c", "fail.so", "trigger"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(source, LIBRARY);
  const { status, stderr } = spawnSync("gcc", ["-shared", "-fPIC", "-o", library, source, "-ldl"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`gcc failed: ${stderr}`);
  return {
    env: { LD_PRELOAD: library, FAILING_FILE: file, FAILING_TRIGGER: trigger },
    fail: () => writeFileSync(trigger, ""),
  };
}

/** `test` where {@link failingDisk} can be made; elsewhere the test is skipped and its name says why. */
export function testWithFailingDisk(name: string, run: () => Promise<void>): void {
  const isThere = process.platform === "linux" && spawnSync("gcc", ["--version"]).status === 0;
  if (isThere) test(name, run);
  else test.skip(`${name} (skipped: it needs Linux and gcc)`, run);
}
