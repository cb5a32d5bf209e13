import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { temporaryFolder } from "../harness/server.ts";
import { ABSTRACT_SOCKET, ATTEMPTS, makeWorld } from "./attempts.ts";
import { expectConfined } from "./confined.ts";
import { bare, bubblewrap, enter, isRoot, type Place } from "./sandboxes.ts";

let sandbox: Place;
let unfiltered: Place;
let free: Place;
const { variables, hidden, close } = makeWorld();

beforeAll(async () => {
  sandbox = await enter(await bubblewrap({ hidden }));
  unfiltered = await enter(await bubblewrap({ hidden, isFiltered: false }));
  free = await enter(bare);
});

afterAll(close);

describe("work in a sandbox does not reach", () => {
  test.each(ATTEMPTS.map((attempt) => ({ ...attempt })))(
    "$name ($means)",
    async ({ script, needsRoot, means }) => {
      const attempt = (place: Place) =>
        place.sh(script, { ...variables, WORKSPACE_FOLDER: place.workspace.folder });
      const kept = await attempt(sandbox);
      expect(kept).not.toMatchObject({ exit: 0 });
      expect(kept.text).not.toMatch(/hidden|MARK_OF_OTHERS/);
      // Otherwise this line would show nothing.
      if (isRoot || !needsRoot) expect(await attempt(free)).toMatchObject({ exit: 0 });
      if (means === "filter" && !needsRoot) expect(await attempt(unfiltered)).toMatchObject({ exit: 0 });
    },
  );
});

test("work has no capabilities, gets no new privileges, and has its own namespaces", async () => {
  await expectConfined(sandbox, free, "user pid ipc uts cgroup mnt");
});

test("work has its own /tmp, which stays for the next command, and what it is configured to read", async () => {
  const readable = temporaryFolder();
  chmodSync(readable, 0o755);
  writeFileSync(join(readable, "program"), "#!/bin/sh\necho runs\n", { mode: 0o755 });
  const link = join(temporaryFolder(), "link");
  symlinkSync(readable, link);
  const place = await enter(await bubblewrap({ readable: [readable, link] }));
  expect((await place.sh(`${link}/program`)).text).toBe("runs\n");
  expect(await place.sh(`echo kept > /tmp/file; ${readable}/program; touch ${readable}/x`)).toMatchObject({
    exit: 1,
  });
  expect((await place.sh(`cat /tmp/file; ${readable}/program`)).text).toBe("kept\nruns\n");
});

test("a folder that would show what is hidden cannot be made readable", async () => {
  const { DATA = "" } = variables;
  for (const readable of [DATA, join(DATA, "key.json"), join(DATA, "..")]) {
    await expect(bubblewrap({ readable: [readable], hidden: [DATA] })).rejects.toThrow(/would see/);
  }
});

test("the abstract sockets of the machine are not reached", async () => {
  expect(await sandbox.sh(ABSTRACT_SOCKET)).toMatchObject({
    exit: 1,
    text: expect.stringContaining("refused"),
  });
  // Otherwise this line would show nothing.
  expect(await free.sh(ABSTRACT_SOCKET)).toEqual({ exit: 0, text: "reached\n" });
});
