import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { ROOT } from "../harness/program.ts";
import { temporaryFolder } from "../harness/server.ts";
import { BUILD_MS, build, describeWith, environmentWith, pythonPrograms } from "./toolchain.ts";

const { version } = packageJson;

describeWith(["go", "python3"], "the packs of a release", () => {
  test(
    "are those of each language whose tools are there, the same for the same commit",
    async () => {
      const requirements = join(ROOT, "test/clients/python/requirements.txt");
      const env = environmentWith(await pythonPrograms(requirements));
      const sums = async () => {
        const to = temporaryFolder();
        // To compile the Maven module would take a minute; another suite packs it.
        const options = ["scripts/packs/pack.ts", "--all", "--without", "java", "--to", to];
        const printed = await build(ROOT, env, "node", ...options);
        expect(printed).toContain("without the Maven module: --without java\n");
        const files = readdirSync(to).sort();
        return execFileSync("sha256sum", files, { cwd: to, encoding: "utf8" });
      };
      const first = await sums();
      expect(first.match(/(?<= )\S+$/gm)).toEqual([
        `chartroom-api-${version}.tgz`,
        `chartroom-client-${version}.tgz`,
        `chartroom-go-${version}.tar.gz`,
        `chartroom-protos-${version}.tar.gz`,
        `chartroom_client-${version}-py3-none-any.whl`,
      ]);
      expect(await sums()).toBe(first);
    },
    BUILD_MS,
  );
});
