import { execFileSync } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { realGit, realPrograms } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

describe("the git that is found", () => {
  test.each([
    ["git version 2.37.0", true],
    ["git version 2.37.0.windows.1", true],
    ["git version 2.100.1 (Apple Git-1)", true],
    ["git version 3.0.0", true],
    ["git version 2.36.9", false],
    ["git version 1.99.0", false],
    ["something else", false],
  ])("%j may be used: %p", async (version, isNew) => {
    const bin = temporaryFolder();
    writeFileSync(join(bin, "git"), `#!/bin/sh\necho '${version}'\n`, { mode: 0o755 });
    const preparing = realGit({ programs: { ...realPrograms, path: bin } });
    if (isNew) expect((await preparing).programs.path).toBe(bin);
    else await expect(preparing).rejects.toMatchObject({ reason: "git_missing" });
  });

  test("must be there", async () => {
    const programs = { ...realPrograms, path: temporaryFolder() };
    await expect(realGit({ programs })).rejects.toThrow("git 2.37 or newer is needed in PATH: install it");
  });
});

describe("the program that answers git's questions", () => {
  const environment = {
    CHARTROOM_GIT_SCHEME: "https",
    CHARTROOM_GIT_HOST: "git.example.org:8443",
    CHARTROOM_GIT_USER: "ada",
    CHARTROOM_GIT_TOKEN: "-n $(id) 'x' \\t *",
  };
  const ask = async (prompt: string) => {
    const { askPass } = await realGit();
    try {
      return execFileSync(askPass, [prompt], {
        env: environment,
        stdio: ["ignore", "pipe", "ignore"],
      }).toString();
    } catch {
      return undefined;
    }
  };

  test("says user and token as they are for the host that they are for", async () => {
    expect(await ask("Username for 'https://git.example.org:8443': ")).toBe("ada\n");
    expect(await ask("Password for 'https://ada@git.example.org:8443': ")).toBe("-n $(id) 'x' \\t *\n");
  });

  test.each([
    "Username for 'https://git.example.org': ",
    "Username for 'http://git.example.org:8443': ",
    "Password for 'https://ada@other.example': ",
    "Password for 'https://ada@other.example/@git.example.org:8443/': ",
    "Password for 'http://ada@git.example.org:8443': ",
    "Password for 'https://git.example.org:8443': ",
    "Enter passphrase for key '/keys/id': ",
    "",
  ])("says nothing to %j", async (prompt) => {
    expect(await ask(prompt)).toBeUndefined();
  });

  test("is for the runner's user alone, and stays the same file for a second runner", async () => {
    const folder = temporaryFolder();
    const [first, second] = await Promise.all([realGit({ folder }), realGit({ folder })]);
    expect([first.askPass, first.ssh]).toEqual([second.askPass, second.ssh]);
    for (const file of [first.askPass, first.ssh]) expect(statSync(file).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder).sort()).toEqual(["askpass", "home", "scratch", "ssh"]);
  });
});
