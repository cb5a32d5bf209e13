import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, expect, test } from "@jest/globals";
import { ROOT } from "../harness/program.ts";
import { startServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

test("axe-core finds nothing serious on any page or window of the sample data, in both themes, and none is too wide", async () => {
  const server = await startServer({
    dataDir: join(temporaryFolder(), "data"),
    args: ["--sample-data"],
  });
  const outcome = await until(
    () =>
      server
        .log()
        .find(({ msg }) => /^the sample data (is there|could not be made whole)$/.test(String(msg))),
    (line) => line !== undefined,
    900_000,
  );
  expect(outcome).toMatchObject({ msg: "the sample data is there" });
  const [link = ""] = /http:\S+\/sign-in#cr_lnk_\w+/.exec(server.output()) ?? [];
  const args = [join(ROOT, "scripts/screenshots.ts"), link, temporaryFolder()];
  const looking = spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const [said, complained, [code]] = await Promise.all([
    text(looking.stdout),
    text(looking.stderr),
    once(looking, "close"),
  ]);
  // The name of a page or a window, and below it what is wrong there.
  const faults = said.split("\n").filter((line) => line.startsWith("  "));
  expect([code, faults, complained]).toEqual([0, [], ""]);
}, 3_600_000);
