import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { post } from "../harness/call.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: HostedServer;
let keyFile: string;
beforeAll(async () => {
  keyFile = join(temporaryFolder(), "key.json");
  server = await startHostedServer({ args: ["--key-file", keyFile] });
});
afterAll(stopAll);

const readyz = async () => {
  const res = await fetch(`${server.url}/readyz`);
  return { status: res.status, body: await res.json() };
};
const reddenedBy = (reason: string) => until(readyz, ({ body }) => body.reason === reason);
const green = () => until(readyz, ({ status }) => status === 200);

interface KeyFile {
  readonly version: number;
  readonly secrets: readonly string[];
}
const newSecret = () => randomBytes(32).toString("base64");

describe("the keys", () => {
  const damages: readonly [name: string, damage: (text: string) => string, reason: string][] = [
    [
      "are no JSON",
      (text) => text.slice(0, -9),
      "the key file holds no keys any more: put back what it held",
    ],
    [
      "are others",
      (text) => JSON.stringify({ ...(JSON.parse(text) as KeyFile), secrets: [newSecret()] }),
      "the key file is not the one that the server started with: put back the keys that it held",
    ],
    [
      "have a newer one before them",
      (text) => {
        const { secrets, ...rest } = JSON.parse(text) as KeyFile;
        return JSON.stringify({ ...rest, secrets: [newSecret(), ...secrets] });
      },
      "the key file has a newer key than the server: restart it",
    ],
  ];

  test.each(damages)("make the server red when they %s, until they are back", async (_, damage, reason) => {
    const text = readFileSync(keyFile, "utf8");
    writeFileSync(keyFile, damage(text));
    const problems = [{ check: "keys", reason }];
    expect(await reddenedBy(reason)).toEqual({
      status: 503,
      body: { status: "unavailable", reason, problems },
    });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    writeFileSync(keyFile, text);
    await green();
  });

  test("make the server red when their file is gone; it goes on answering, and names no path", async () => {
    renameSync(keyFile, `${keyFile}.away`);
    await reddenedBy("the key file is gone: put it back, as the server does not start without it");
    expect((await post(server, "ProjectService/ListProjects", {}, server.token)).status).toBe(200);
    await until(
      async () => server.log(),
      (lines) => lines.some(({ msg, check }) => msg === "the server is not ready" && check === "keys"),
    );
    renameSync(`${keyFile}.away`, keyFile);
    await green();
  });
});

describe("/version", () => {
  test("says which release runs, to GET and HEAD, without a token", async () => {
    const res = await fetch(`${server.url}/version`);
    expect([res.status, await res.json()]).toEqual([
      200,
      { name: "chartroom", version: packageJson.version },
    ]);
    expect(res.headers.get("cache-control")).toBe("no-store");
    expect((await fetch(`${server.url}/version`, { method: "HEAD" })).status).toBe(200);
  });

  test("is nothing to post to", async () => {
    expect((await fetch(`${server.url}/version`, { method: "POST" })).status).not.toBe(200);
  });
});
