import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { checkOutSources } from "../../src/runner/git/git-checkout.ts";
import type { GitSettings } from "../../src/runner/git/git-tools.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { realGit, realPrograms } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

/** There is no ssh server here: a program of its name notes its arguments and runs the command on this machine. */
const SSH = `#!/bin/sh
printf '%s\\n' "$@" --- >> "$(dirname "$0")/arguments"
for last; do :; done
exec sh -c "$last"
`;

async function checkOut(remoteUri: string, settings: Partial<GitSettings> = {}) {
  const bin = temporaryFolder();
  writeFileSync(join(bin, "ssh"), SSH, { mode: 0o755 });
  const tools = await realGit({
    programs: { ...realPrograms, path: `${bin}:${realPrograms.path}` },
    resolve: async () => ["192.0.2.7"],
    ...settings,
  });
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri } } }],
  });
  const credentialFor = () => Promise.reject(new Error("tokens are for https"));
  const [checkout] = await checkOutSources(tools, initializer, { tree: temporaryFolder(), credentialFor });
  const calls = readFileSync(join(bin, "arguments"), "utf8").split("---\n").slice(0, -1);
  return { tools, checkout, calls: calls.map((call) => call.trimEnd().split("\n")) };
}

test.each([
  ["the scp form", (folder: string) => `git@git.example.org:${folder}`, []],
  ["a URL", (folder: string) => `ssh://git@git.example.org${folder}`, []],
  ["a URL with a port", (folder: string) => `ssh://git@git.example.org:2222${folder}`, ["-p", "2222"]],
])("ssh connects to the address that was checked, as the host that was named: %s", async (_, uri, port) => {
  const repository = bareRepository(temporaryFolder(), { "README.md": "one\n" });
  const { tools, checkout, calls } = await checkOut(uri(repository.folder));
  expect(checkout).toMatchObject({ commit: repository.find("main"), remoteUri: uri(repository.folder) });
  expect(calls.length).toBeGreaterThan(0);
  const host = port.length > 0 ? "git.example.org:2222" : "git.example.org";
  for (const call of calls) {
    expect(call).toEqual(
      expect.arrayContaining([
        "-F",
        "none",
        "BatchMode=yes",
        "HostName=192.0.2.7",
        `HostKeyAlias=${host}`,
        "IdentityAgent=none",
        "IdentitiesOnly=yes",
        'IdentityFile="none"',
        `UserKnownHostsFile="${tools.home}/known_hosts"`,
        "git@git.example.org",
        ...port,
      ]),
    );
  }
});

test("the key is the one of the settings", async () => {
  const repository = bareRepository(temporaryFolder(), { "README.md": "one\n" });
  const { calls } = await checkOut(`git@git.example.org:${repository.folder}`, { sshKeyFile: "/keys/a b" });
  expect(calls[0]).toContain('IdentityFile="/keys/a b"');
});

test("a path that looks like a command is data to the shell at the other end", async () => {
  const parent = join(temporaryFolder(), "a'; touch trapped; '$(touch trapped)");
  mkdirSync(parent);
  const repository = bareRepository(parent, { "README.md": "one\n" });
  const remoteUri = `git@git.example.org:${repository.folder}`;
  // The contract takes no white space in a remote.
  await expect(checkOut(remoteUri)).rejects.toMatchObject({ reason: "remote_refused" });
  const plain = join(temporaryFolder(), "a';id;'$(id)");
  mkdirSync(plain);
  const odd = bareRepository(plain, { "README.md": "one\n" });
  const { checkout } = await checkOut(`git@git.example.org:${odd.folder}`);
  expect(checkout?.commit).toBe(odd.find("main"));
});

test("the real ssh takes the arguments", async () => {
  const tools = await realGit({ resolve: async () => ["127.0.0.1"], sshKeyFile: "/absent key" });
  const initializer = create(EnvironmentInitializerSchema, {
    // Nobody listens there.
    specs: [{ spec: { case: "git", value: { remoteUri: "ssh://git@git.example.org:1/r" } } }],
  });
  const place = { tree: temporaryFolder(), credentialFor: async () => undefined };
  await expect(checkOutSources(tools, initializer, place)).rejects.toMatchObject({
    reason: "remote_unreachable",
    retriable: true,
  });
});
