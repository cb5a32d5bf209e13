import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

describe("the first token", () => {
  test("goes to the file that is named, which nobody else can read, and is not printed", async () => {
    const file = join(temporaryFolder(), "token");
    const fresh = await startHostedServer({
      dataDir: join(temporaryFolder(), "data"),
      args: ["--first-token-file", file],
    });
    const token = readFileSync(file, "utf8");
    expect(token).toMatch(/^cr_pat_\w+\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(fresh.output()).toContain(`is in ${file}`);
    expect(fresh.output() + fresh.logText()).not.toMatch(/cr_(pat|lnk)_/);
    const identity = await post(fresh, "IdentityService/GetAuthenticatedIdentity", {}, token.trim());
    expect([identity.status, reasonOf(identity)]).toEqual([200, undefined]);
  });

  test("never replaces a file: the start says how to get a token", async () => {
    const file = join(temporaryFolder(), "token");
    writeFileSync(file, "of somebody");
    const dataDir = join(temporaryFolder(), "data");
    await expect(startHostedServer({ dataDir, args: ["--first-token-file", file] })).rejects.toThrow(
      /--first-token-file .* exists/,
    );
    expect(readFileSync(file, "utf8")).toBe("of somebody");
  });
});
