import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import { replyToPrompts } from "../../src/runner/git/apart/git-channel.ts";
import { resolveRemoteAccess } from "../../src/runner/git/git-access.ts";
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
  /** The answer to a prompt; undefined where the program fails. */
  const ask = async (prompt: string) => {
    const tools = await realGit();
    const credential = { token: "-n $(id) 'x' \\t *", source: Source.PAT };
    const remote = "https://ada@git.example.org:8443/team/ship.git";
    const known = { ...tools, resolve: async () => ["192.0.2.1"] };
    const { answer = () => undefined } = await resolveRemoteAccess(known, remote, async () => credential);
    const result = await realPrograms.run({
      program: tools.askPass,
      args: [prompt],
      folder: "/",
      environment: {},
      keepBytes: 1_000,
      channel: (stream) => replyToPrompts(stream, answer),
    });
    return result.exit === 0 ? result.stdout.toString() : undefined;
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

  test("says nothing without the descriptor to the runner", async () => {
    const { askPass } = await realGit();
    const args = ["Username for 'https://git.example.org:8443': "];
    const { exit } = await realPrograms.run({ program: askPass, args, folder: "/", environment: {} });
    expect(exit).not.toBe(0);
  });

  test("is changed by the runner's user alone, and stays the same file for a second runner", async () => {
    const folder = temporaryFolder();
    const [first, second] = await Promise.all([realGit({ folder }), realGit({ folder })]);
    expect([first.askPass, first.ssh]).toEqual([second.askPass, second.ssh]);
    for (const file of [first.askPass, first.ssh]) expect(statSync(file).mode & 0o777).toBe(0o755);
    expect(readdirSync(folder).sort()).toEqual([
      "askpass",
      "home",
      "scratch",
      "ssh",
      "ssh-relay",
      "ssh-relay.mjs",
    ]);
  });
});
