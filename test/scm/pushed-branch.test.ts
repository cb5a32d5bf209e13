import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "@jest/globals";
import { createSourceControl } from "../../src/scm/source-control.ts";
import { startScmHost } from "../harness/scm-host.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

const run = promisify(execFile);

describe.each(["github", "gitlab"] as const)("a branch pushed to a host of kind %s", (kind) => {
  test("is what its pull request is opened for, and no other branch is", async () => {
    const host = await startScmHost({ kind });
    const scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
    const bare = temporaryFolder();
    const work = temporaryFolder();
    const askpass = join(temporaryFolder(), "askpass");
    writeFileSync(askpass, `#!/bin/sh\necho ${host.token}\n`, { mode: 0o700 });
    const identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"];
    const git = (...args: string[]) =>
      run("git", ["-C", work, ...identity, ...args], {
        env: { PATH: process.env.PATH, GIT_ASKPASS: askpass, GIT_CONFIG_NOSYSTEM: "1", HOME: work },
      });
    await run("git", ["init", "--quiet", "--bare", "--initial-branch", "main", bare]);
    await run("git", ["init", "--quiet", "--initial-branch", "main", work]);
    const remote = host.addRepository("o/r", bare);
    await git("commit", "--quiet", "--allow-empty", "-m", "first");
    await git("push", "--quiet", remote, "main", "main:topic");
    const cloned = await git("ls-remote", "--heads", remote);
    expect(cloned.stdout.match(/refs\/heads\/\w+/g)).toEqual(["refs/heads/main", "refs/heads/topic"]);

    const open = (branch: string) =>
      scm.openPullRequest({
        host: host.host,
        remote,
        token: host.token,
        title: "t",
        description: "",
        branch,
        base: "main",
        draft: false,
      });
    expect(await open("topic")).toMatchObject({ number: 1, created: true });
    await expect(open("never-pushed")).rejects.toMatchObject({ kind: "validation" });
    await host.stop();
  });
});
