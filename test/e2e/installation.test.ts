import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ROOT, runProgram, terminalEnvironment } from "../harness/program.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const REASON = "skipped because it installs from the npm registry, which only CI does";

/** A registry and a machine may be slow. */
const INSTALL_MS = 900_000;

/** What a checkout holds that a server needs. */
const PARTS = ["bin", "console", "gen", "proto", "src", "package.json", "package-lock.json"];

const inCi = process.env.CI ? describe : describe.skip; // It installs from the network, which only CI does.
inCi(
  `an installation without development packages and without install scripts${process.env.CI ? "" : `: ${REASON}`}`,
  () => {
    const env = { ...terminalEnvironment(), CHARTROOM_PORT: "0", CHARTROOM_DATA_DIR: temporaryFolder() };
    const folder = temporaryFolder();

    beforeAll(async () => {
      for (const name of PARTS) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
      const install = await runProgram("npm", ["ci", "--omit=dev", "--ignore-scripts", "--prefer-offline"], {
        cwd: folder,
        env,
        timeMs: INSTALL_MS,
      });
      expect({ code: install.code, stderr: install.code === 0 ? "" : install.stderr }).toEqual({
        code: 0,
        stderr: "",
      });
    }, INSTALL_MS);
    afterAll(stopAll);

    test("starts by npm start", async () => {
      const npm = spawn("npm", ["start"], {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", "inherit"],
        detached: true,
      });
      try {
        const closed = once(npm, "close");
        let readiness = 0;
        for await (const line of createInterface({ input: npm.stdout })) {
          const url = /^Chartroom is ready at (\S+)$/.exec(line)?.[1];
          if (!url) continue;
          readiness = (await fetch(`${url}/readyz`)).status;
          process.kill(-(npm.pid ?? Number.NaN), "SIGTERM");
        }
        expect({ readiness, ended: await closed }).toEqual({ readiness: 200, ended: [0, null] });
      } finally {
        npm.kill("SIGKILL");
      }
    });

    test("has the command of npx", async () => {
      const { code, stdout } = await runProgram("npx", ["chartroom", "--help"], { cwd: folder, env });
      expect([code, stdout.split("\n")[0]]).toEqual([0, "Usage: chartroom [options] [command]"]);
    });
  },
);
