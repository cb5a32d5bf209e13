import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { WorkSchema, type WorkSecretSchema } from "#gen/runner/v1/work_pb.js";
import { temporaryFolder } from "../../../test/harness/server.ts";
import { mountSecrets, unmountSecrets } from "./work-secrets.ts";

type Secret = MessageInitShape<typeof WorkSecretSchema>;
const variable = (name: string, value: string): Secret => ({
  name,
  value,
  mount: { case: "environmentVariable", value: true },
});
const file = (path: string, value = "inside", name = "FILE"): Secret => ({
  name,
  value,
  mount: { case: "filePath", value: path },
});
const mount = (folder: string, ...secrets: Secret[]) =>
  mountSecrets(create(WorkSchema, { secrets: [...secrets] }), folder);

test("secrets become variables, and files that their owner alone reads", async () => {
  const folder = join(temporaryFolder(), "secrets");
  const variables = await mount(folder, variable("TOKEN", "t0ken"), file("/etc/app/key.pem", "one\ntwo\n"));
  expect(variables).toEqual({ TOKEN: "t0ken", CHARTROOM_SECRETS: folder });
  const key = join(folder, "etc/app/key.pem");
  expect(readFileSync(key, "utf8")).toBe("one\ntwo\n");
  const modes = [key, join(folder, "etc/app"), join(folder, "etc"), folder].map(
    (path) => statSync(path).mode & 0o777,
  );
  expect(modes).toEqual([0o600, 0o700, 0o700, 0o700]);
});

test("of one that is put into requests, the work gets a placeholder, or nothing", async () => {
  const folder = join(temporaryFolder(), "secrets");
  const proxied = (name: string, placeholderMount?: Secret["mount"]): Secret => ({
    secretId: name.toLowerCase(),
    name,
    value: "t0ken",
    credentialProxy: {
      targetHosts: ["a.example"],
      header: "x-key",
      ...(placeholderMount && { placeholderMount }),
    },
  });
  const variables = await mount(
    folder,
    proxied("ONE", { case: "environmentVariable", value: true }),
    proxied("TWO", { case: "filePath", value: "/two" }),
    proxied("NONE"),
  );
  expect(variables).toEqual({ ONE: "chartroom-placeholder-one", CHARTROOM_SECRETS: folder });
  expect(readFileSync(join(folder, "two"), "utf8")).toBe("chartroom-placeholder-two");
});

test("no folder is made where no secret is a file", async () => {
  const folder = join(temporaryFolder(), "secrets");
  expect(await mount(folder, variable("TOKEN", ""))).toEqual({ TOKEN: "" });
  expect(existsSync(folder)).toBe(false);
});

test("what an earlier lease left is gone, and so is everything at the end", async () => {
  const folder = join(temporaryFolder(), "secrets");
  await mount(folder, file("/old"));
  await mount(folder, file("/new"));
  expect([existsSync(join(folder, "old")), existsSync(join(folder, "new"))]).toEqual([false, true]);
  await unmountSecrets(folder);
  expect(existsSync(folder)).toBe(false);
  await unmountSecrets(folder);
});

test.each<[string, string[], RegExp]>([
  [
    "leads out of the folder",
    ["/../../outside"],
    /^the secret FILE with the path .* is no file: its path is refused$/,
  ],
  ["is not absolute", ["outside"], /its path is refused/],
  ["has a zero character", ["/a\0b"], /its path is refused/],
  ["is that of another one's folder", ["/a/b", "/a"], /lies below that of another/],
  ["lies below another one", ["/a", "/a/b"], /lies below that of another/],
  ["is too long for the machine", [`/${"x".repeat(300)}`], /too long/],
])("a path that %s is refused, without the value", async (_, paths, message) => {
  const folder = join(temporaryFolder(), "secrets");
  const mounting = mount(folder, ...paths.map((path) => file(path)));
  await expect(mounting).rejects.toMatchObject({
    reason: "secret_not_mounted",
    message: expect.stringMatching(message),
  });
  await expect(mounting).rejects.not.toThrow(/inside/);
});
