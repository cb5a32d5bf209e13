import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: HostedServer;
/** The file to which the server exports as the trail grows. */
let grown: string;
let organization: string;
/** Three exports, each from the end of the one before. */
let files: string[];

async function exported(since?: string): Promise<string> {
  const more = since === undefined ? [] : ["--since", since];
  const run = await runHostedCommand(["audit", "export", "--data-dir", server.dataDir, ...more]);
  expect([run.code, run.stderr]).toEqual([0, ""]);
  return written(run.stdout);
}

function written(text: string): string {
  const file = join(temporaryFolder(), "audit.jsonl");
  writeFileSync(file, text);
  return file;
}

const linesOf = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n");
const makeRunner = (name: string) => post(server, "RunnerService/CreateRunner", { name });

/** What is said of exports, and the exit code. */
async function check(...checked: string[]): Promise<{ code: number; said: string[] }> {
  const { code, stdout } = await runHostedCommand([
    "audit",
    "check",
    ...checked,
    "--data-dir",
    server.dataDir,
  ]);
  return { code: code ?? -1, said: stdout.trimEnd().split("\n") };
}

/** A copy of the first export whose lines are changed. */
const changed = (change: (lines: string[]) => string[]) =>
  written(`${change(linesOf(files[0] ?? "")).join("\n")}\n`);

beforeAll(async () => {
  grown = join(temporaryFolder(), "grown.jsonl");
  server = await startHostedServer({ args: ["--audit-file", grown] });
  organization = (await addOrganization(server, "Second")).organizationId;
  await makeRunner("one");
  const first = await exported();
  await makeRunner("two");
  const second = await exported(first);
  await makeRunner("three");
  files = [first, second, await exported(second)];
});
afterAll(stopAll);

describe("chartroom audit export", () => {
  test("has each row once, and goes on where an earlier one ended, while the server runs", async () => {
    const rows = files.map((file) => linesOf(file).map((line) => JSON.parse(line)));
    const ids = rows.flat().flatMap(({ row }) => (row ? [row.id] : []));
    expect(new Set(ids).size).toBe(ids.length);
    const { stdout } = await runHostedCommand(["audit", "export", "--data-dir", server.dataDir]);
    const whole = stdout
      .trimEnd()
      .split("\n")
      .flatMap((line) => (JSON.parse(line).row ? [JSON.parse(line).row.id] : []));
    expect(ids.sort()).toEqual(whole.sort());
    expect(rows[1]?.[0].after).toEqual(rows[0]?.at(-1).heads);
    // The runner and its token.
    expect(rows[1]?.filter(({ row }) => row)).toHaveLength(2);
  });

  test("is found to be whole, in parts, together and where parts come again", async () => {
    const [first = "", second = "", third = ""] = files;
    for (const some of [[first], files, [first, first, second, second, third], [await exported()]]) {
      const { code, said } = await check(...some);
      expect([code, said.at(-1)]).toEqual([0, "nothing is missing"]);
      expect(said[0]).toMatch(/^installation: \d+ rows, \d+ hold; last hash [0-9a-f]{64}$/);
      expect(said).toHaveLength(4);
    }
    const { code, said } = await check(second, third);
    expect([code, said.at(-1)]).toEqual([0, "nothing is missing"]);
    expect(said[0]).toMatch(/; from row \d+ on$/);
  });
});

/** The file, which may not be there yet, behind full ones: on PostgreSQL each server begins with one of its own. */
const parts = () => {
  const names = readdirSync(dirname(grown)).filter((name) => name.startsWith(basename(grown)));
  const full = names.filter((name) => name !== basename(grown)).sort();
  return [...full, ...names.filter((name) => name === basename(grown))].map((name) =>
    join(dirname(grown), name),
  );
};
/** The rows in whole lines of files. */
const idsIn = (...of: string[]) =>
  of
    .flatMap((file) => readFileSync(file, "utf8").split("\n").slice(0, -1))
    .flatMap((line) => JSON.parse(line).row?.id ?? [])
    .sort();

describe("the export of a server as the trail grows", () => {
  test("has every row soon, once, and is found to be whole; a server that starts again goes on", async () => {
    const whole = await exported();
    await until(
      () => idsIn(...parts()),
      (ids) => ids.length >= idsIn(whole).length,
    );
    expect(idsIn(...parts())).toEqual(idsIn(whole));
    expect((await check(...parts())).said.at(-1)).toBe("nothing is missing");
    const { dataDir, token } = server;
    await server.stop();
    server = { ...(await startHostedServer({ dataDir, args: ["--audit-file", grown] })), token };
    await makeRunner("four");
    const more = await exported();
    await until(
      () => idsIn(...parts()),
      (ids) => ids.length >= idsIn(more).length,
    );
    expect(idsIn(...parts())).toEqual(idsIn(more));
    const { code, said } = await check(...parts());
    expect([code, said.at(-1)]).toEqual([0, "nothing is missing"]);
  });
});

test("an export goes on from the file that a server writes as the trail grows", async () => {
  const whole = await exported();
  await until(
    () => idsIn(...parts()),
    (ids) => ids.length >= idsIn(whole).length,
  );
  const copies = parts().map((part) => written(readFileSync(part, "utf8")));
  await makeRunner("five");
  const more = await exported(copies.at(-1));
  // The runner and its token.
  expect(idsIn(more)).toHaveLength(2);
  const { code, said } = await check(...copies, more);
  expect([code, said.at(-1)]).toEqual([0, "nothing is missing"]);
});

describe("chartroom audit check misses", () => {
  const missed = async (...checked: string[]) => {
    const { code, said } = await check(...checked);
    expect([code, said.at(-1)]).toEqual([1, expect.stringMatching(/ of 3 chains are broken$/)]);
    return said.find((line) => line.includes("breaks at row"));
  };

  test("a part between two others", async () => {
    const [first = "", , third = ""] = files;
    expect(await missed(first, third)).toMatch(/the rows from here to \d+ are missing$/);
  });

  test("the last part of a chain, and the end of an export", async () => {
    const [first = "", second = ""] = files;
    const end = linesOf(second).at(-1) ?? "";
    const cut = changed((lines) => [...lines.slice(0, -1), end]);
    expect(await missed(cut)).toMatch(/are missing at the end of the chain$/);
    expect(await missed(changed((lines) => lines.slice(0, -1)))).toMatch(
      /the export does not end with the heads of the chains$/,
    );
    expect((await check(first, second)).code).toBe(0);
  });

  test("a row in the middle, one that was changed, and two that were swapped", async () => {
    expect(await missed(changed((lines) => lines.toSpliced(2, 1)))).toMatch(/: it is missing$/);
    const other = changed((lines) =>
      lines.map((line, at) => (at === 2 ? line.replace('"reason":""', '"reason":"x"') : line)),
    );
    expect(await missed(other)).toMatch(/it was changed: its content does not match its hash$/);
    const swapped = changed((lines) => [
      ...lines.slice(0, 2),
      lines[3] ?? "",
      lines[2] ?? "",
      ...lines.slice(4),
    ]);
    expect(await missed(swapped)).toMatch(/breaks at row/);
  });

  test("a chain that was left out with its head, since the installation's names its organization", async () => {
    const without = changed((lines) =>
      lines
        .filter((line) => JSON.parse(line).row?.chain !== organization)
        .map((line) => {
          const { heads } = JSON.parse(line);
          if (!heads) return line;
          return JSON.stringify({
            heads: heads.filter(({ chain }: { chain: string }) => chain !== organization),
          });
        }),
    );
    expect(await missed(without)).toMatch(
      new RegExp(`^organization ${organization}: 0 rows, 0 hold; breaks at row 1`),
    );
  });

  test("nothing in silence: what is no export is refused with its file and line", async () => {
    const other = written('{"after":[]}\n{"row":{"id":1}}\n');
    const run = await runHostedCommand(["audit", "check", other, "--data-dir", server.dataDir]);
    expect([run.code, run.stdout]).toEqual([1, ""]);
    expect(run.stderr).toContain(`${other} cannot be read: line 2 is no line of an export`);
    const since = await runHostedCommand([
      "audit",
      "export",
      "--since",
      written('{"after":[]}\n'),
      "--data-dir",
      server.dataDir,
    ]);
    expect([since.code, since.stdout]).toEqual([1, ""]);
    expect(since.stderr).toContain("it is not an export, or only part of one");
  });
});
