import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { realPrograms } from "../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../test/harness/server.ts";
import { readMachineRegistries } from "./machine-registries.ts";
import { readNamedHosts } from "./named-hosts.ts";

afterAll(stopAll);

function fileOf(text: string): string {
  const file = join(temporaryFolder(), "hosts");
  writeFileSync(file, text);
  return file;
}

test("the operator's file names hosts of registries and models", () => {
  const file = fileOf(
    "# ours\nregistries packages.example.org\n\n  models\t*.API.example.org:8443 # theirs\r\nmodels 10.0.0.7\n",
  );
  expect(readNamedHosts(file)).toEqual({
    registries: [{ name: "registries", host: "packages.example.org", ports: [80, 443] }],
    models: [
      { name: "models", host: "*.api.example.org", ports: [8_443] },
      { name: "models", host: "10.0.0.7", ports: [80, 443] },
    ],
  });
  expect(readNamedHosts("")).toEqual({ registries: [], models: [] });
});

test.each([
  "sources a.example",
  "models",
  "models a b",
  "models https://a.example",
  "models *",
  "models *.10.0.0.7",
])("the line %j is refused with its number", (line) => {
  expect(() => readNamedHosts(fileOf(`models a.example\n${line}\n`))).toThrow(/, line 2: it must be/);
});

test("a file that cannot be read is refused", () => {
  expect(() => readNamedHosts("/no/such/file")).toThrow(/--egress-hosts \/no\/such\/file cannot be read/);
});

test("registries are those that the clients of the machine are set to", async () => {
  const home = temporaryFolder();
  mkdirSync(join(home, ".config/pip"), { recursive: true });
  mkdirSync(join(home, ".m2"));
  writeFileSync(
    join(home, ".npmrc"),
    "registry=https://npm.example.org/api/\n;registry=https://remark.example.org\n@o:registry=http://other.example.org:8081\nproxy=http://way-out.example.org\nhttps-proxy = http://way-out.example.org\n",
  );
  writeFileSync(
    join(home, ".config/pip/pip.conf"),
    "[global]\n# https://remark.example.org\nindex-url = https://user:word@pip.example.org/simple\nproxy = http://way-out.example.org\n",
  );
  mkdirSync(join(home, ".config/go"));
  mkdirSync(join(home, ".cargo"));
  writeFileSync(join(home, ".config/go/env"), "GOPROXY=https://go3.example.org/proxy=1\n");
  writeFileSync(join(home, ".cargo/config.toml"), '[http]\nproxy = "http://way-out.example.org:8080"\n');
  writeFileSync(
    join(home, ".gemrc"),
    ":http_proxy: http://way-out.example.org\n:sources:\n- https://gems.example.org\n",
  );
  writeFileSync(
    join(home, ".yarnrc.yml"),
    'httpsProxy: "http://way-out.example.org"\nnpmRegistryServer: "https://yarn.example.org"\n',
  );
  writeFileSync(
    join(home, ".m2/settings.xml"),
    '<settings xmlns="http://names.example.org/1">\n<!-- <url>https://remark.example.org</url>\n-->\n<url>https://maven.example.org/all</url></settings>',
  );
  const env = {
    GOPROXY: "https://go.example.org,https://go2.example.org|direct",
    OTHER: "https://no.example.org",
  };
  const found = await readMachineRegistries({
    programs: { ...realPrograms, path: "/nonexistent" },
    env,
    home,
  });
  const names = found.map(({ host, ports }) => `${host} ${ports}`);
  expect(names).toEqual(
    expect.arrayContaining([
      "npm.example.org 443",
      "other.example.org 8081",
      "pip.example.org 443",
      "maven.example.org 443",
      "go.example.org 443",
      "go2.example.org 443",
      "go3.example.org 443",
      "gems.example.org 443",
      "yarn.example.org 443",
    ]),
  );
  expect(names.join()).not.toMatch(/remark|names|no\.example|way-out/);
});

test("a client tells its registry where no setting does", async () => {
  const path = temporaryFolder();
  writeFileSync(
    join(path, "npm"),
    '#!/bin/sh\n[ "$*" = "config get registry" ] && echo https://npm.example.org/\n',
    {
      mode: 0o755,
    },
  );
  const programs = { ...realPrograms, path: `${path}:/bin:/usr/bin` };
  const found = await readMachineRegistries({ programs, env: {}, home: temporaryFolder() });
  expect(found).toContainEqual({ name: "registries", host: "npm.example.org", ports: [443] });
});
