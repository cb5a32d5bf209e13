import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const MIB = 1_048_576;
/** Maximum of the contract for a patch, in characters. */
const PATCH = 524_288;
/** A large file of which little changes. */
const lines = (bytes: number) => `${"a".repeat(63)}\n`.repeat(bytes / 64 + 1).slice(0, bytes);
const NAMES = [MIB - 1, MIB, MIB + 1].map((bytes) => [`of-${bytes}`, bytes] as const);

let server: HostedServer;
let origin: BareRepository;
let environmentId: string;
/** The folder of the environment's repository. */
let tree: string;
beforeAll(async () => {
  server = await startHostedServer();
  const { stateDir, runnerId } = await startRegisteredHostedRunner(server);
  const filter = { runnerIds: [runnerId] };
  const { environmentClasses } = await call("RunnerConfigurationService/ListEnvironmentClasses", { filter });
  origin = bareRepository(
    temporaryFolder(),
    Object.fromEntries(NAMES.map(([name, bytes]) => [name, lines(bytes)])),
    "hello.git",
  );
  const spec = {
    content: { initializer: repository(origin.url) },
    machine: { class: environmentClasses[0].id },
  };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Full", spec });
  environmentId = environment.id;
  tree = join(stateDir, "workspaces", environmentId, "tree/hello");
  await until(refresh, ({ status }) => status === 200);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
const refresh = () =>
  post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true });
const pageOf = (operation: string, more: object, pageSize: number, token = "") =>
  post(server, `EnvironmentService/${operation}`, {
    environmentId,
    ...more,
    pagination: { pageSize, token },
  });
/** All files of the diff, once the runner has looked. */
async function diff(): Promise<Answer["body"][]> {
  await succeeded(refresh());
  const files = [];
  for (let token = ""; ; ) {
    const { body } = await pageOf("GetEnvironmentDiff", {}, 100, token);
    files.push(...body.files);
    token = body.pagination.nextToken;
    if (token === "") return files;
  }
}
const write = (name: string, content: string | Buffer) => writeFileSync(join(tree, name), content);
const remove = (...names: string[]) => {
  for (const name of names) rmSync(join(tree, name), { recursive: true, force: true });
};
/** The lengths of the pages of a list, to its end, and whether each follows from the one before. */
async function pages(operation: string, more: object, pageSize: number): Promise<number[]> {
  const lengths = [];
  for (let token = ""; ; ) {
    const { body } = await pageOf(operation, more, pageSize, token);
    lengths.push(body.files.length);
    token = body.pagination.nextToken;
    if (token === "") return lengths;
  }
}

describe("a file", () => {
  test("of 1 MiB is compared, and one byte more is described by its size", async () => {
    for (const [name, bytes] of NAMES) write(name, `b${lines(bytes).slice(1)}`);
    const files = await diff();
    expect(
      files.map(({ path, sizeBytes, patch, patchOmission }) => [
        path,
        sizeBytes,
        patch !== "",
        patchOmission,
      ]),
    ).toEqual([
      [`hello/of-${MIB - 1}`, String(MIB - 1), true, "PATCH_OMISSION_UNSPECIFIED"],
      [`hello/of-${MIB}`, String(MIB), true, "PATCH_OMISSION_UNSPECIFIED"],
      [`hello/of-${MIB + 1}`, String(MIB + 1), false, "PATCH_OMISSION_LARGE"],
    ]);
    for (const [name, bytes] of NAMES) write(name, lines(bytes));
  });

  test.each([
    [PATCH - 1, PATCH - 1],
    [PATCH, PATCH],
    [PATCH + 1, 0],
  ])("whose patch has %i characters is shown with %i of them", async (characters, shown) => {
    const head = "@@ -0,0 +1 @@\n+".length + "\n".length;
    write("new.txt", `${"x".repeat(characters - head)}\n`);
    const [file] = await diff();
    expect([file.patch.length, file.patchOmission]).toEqual([
      shown,
      shown > 0 ? "PATCH_OMISSION_UNSPECIFIED" : "PATCH_OMISSION_LARGE",
    ]);
    remove("new.txt");
  });

  test("is read in parts of at most 1 MiB", async () => {
    const read = (maxBytes: number, offset = 0) =>
      post(server, "EnvironmentService/ReadEnvironmentFile", {
        environmentId,
        path: `hello/of-${MIB + 1}`,
        maxBytes,
        offset: String(offset),
      });
    for (const maxBytes of [MIB - 1, MIB, 0]) {
      const { body } = await read(maxBytes);
      const bytes = maxBytes || MIB;
      expect([Buffer.from(body.data, "base64").length, body.nextOffset]).toEqual([bytes, String(bytes)]);
    }
    expect(reasonOf(await read(MIB + 1))).toBe("CONSTRAINT_VIOLATED");
    for (const [offset, length, next] of [
      [1, MIB, "0"],
      [MIB, 1, "0"],
      [MIB + 1, 0, "0"],
      [MIB + 2, 0, "0"],
    ] as const) {
      const { body } = await read(MIB, offset);
      expect([offset, Buffer.from(body.data ?? "", "base64").length, body.nextOffset]).toEqual([
        offset,
        length,
        next,
      ]);
    }
  });
});

describe("a list of 101 files", () => {
  const COUNT = 101;
  beforeAll(async () => {
    mkdirSync(join(tree, "many"));
    for (let at = 0; at < COUNT; at++) write(`many/${at}`, "x\n");
    await succeeded(refresh());
  });
  afterAll(() => remove("many"));

  test.each<[string, object]>([
    ["GetEnvironmentDiff", {}],
    ["GetEnvironmentDiff", { commit: "HEAD" }],
    ["ListEnvironmentFiles", { path: "hello/many" }],
  ])("by %s %j has pages of up to 100, and of 25 where none is asked for", async (operation, asked) => {
    const more = "commit" in asked ? { commit: origin.find("main") } : asked;
    expect(await pages(operation, more, 0)).toEqual([25, 25, 25, 25, 1]);
    expect(await pages(operation, more, 99)).toEqual([99, 2]);
    expect(await pages(operation, more, 100)).toEqual([100, 1]);
    expect(reasonOf(await pageOf(operation, more, 101))).toBe("CONSTRAINT_VIOLATED");
    const { body } = await pageOf(operation, more, 1);
    expect(body.files).toHaveLength(1);
    expect(reasonOf(await pageOf(operation, more, 1, `${body.pagination.nextToken}x`))).toBe(
      "PAGE_TOKEN_INVALID",
    );
  });
});

test("what is kept of an environment with more than 2,000 changed files and 4 MiB of patches fits", async () => {
  mkdirSync(join(tree, "many"));
  for (let at = 0; at < 2_001; at++) write(`many/${at}`, `${"x".repeat(2_100)}\n`);
  const files = await diff();
  expect(files).toHaveLength(2_000);
  const { body } = await pageOf("GetEnvironmentDiff", {}, 1);
  expect(body.filesLeftOut).toBe(1);
  const { changes } = await call("EnvironmentService/GetEnvironmentChanges", { environmentId });
  expect(changes.counts).toMatchObject({ addedFiles: 2_001, addedLines: "2001" });
  expect(files.at(-1)).toMatchObject({ patch: "", patchOmission: "PATCH_OMISSION_FULL" });
  const kept = files.reduce((sum, { patch, path }) => sum + patch.length + path.length, 0);
  expect(kept).toBeGreaterThan(2_000_000);
  expect(kept).toBeLessThan(4 * MIB);
  remove("many");
});

test("a report of a runner has 4 MiB at most", async () => {
  const runner = await registerRunner(server);
  const spec = { machine: { class: runner.environmentClassId } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Reported", spec });
  const report = (bytes: number) => {
    const body = JSON.stringify({ environmentId: environment.id, diffs: [] });
    const padded = body.replace("[]", `[${" ".repeat(bytes - body.length)}]`);
    expect(Buffer.byteLength(padded)).toBe(bytes);
    return post(server, "EnvironmentWorkService/ReportEnvironmentChanges", padded, runner.token);
  };
  expect((await report(4 * MIB - 1)).status).toBe(200);
  expect((await report(4 * MIB)).status).toBe(200);
  const refused = await report(4 * MIB + 1);
  expect([refused.status, refused.body.code]).toEqual([429, "resource_exhausted"]);
});
