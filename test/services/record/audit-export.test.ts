import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { auditDelay } from "../../../src/domain/record/audit-delay.ts";
import type { AuditSink, ExportLine } from "../../../src/domain/record/audit-export.ts";
import { createExportCheck } from "../../../src/domain/record/audit-export-check.ts";
import { auditExportJobs, exportAudit } from "../../../src/jobs/audit-export.ts";
import { auditMacOf } from "../../../src/keys.ts";
import { createLog } from "../../../src/log.ts";
import { MAX_RESPONSE_BYTES } from "../../../src/scm/bounded-fetch.ts";
import { AuditCollector } from "../../../src/sinks/audit-collector.ts";
import { AuditFile } from "../../../src/sinks/audit-file.ts";
import { findConfirmed } from "../../../src/store/record/audit-export.ts";
import { findAuditLag } from "../../../src/store/record/audit-lag.ts";
import { tampering } from "../../harness/raw-data.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

let made: TestStore;
let caller: Caller;
let folder: string;
const files: AuditFile[] = [];
beforeEach(async () => {
  made = openTestStore();
  folder = mkdtempSync(join(tmpdir(), "chartroom-audit-"));
  caller = await made.createOrganization("harbour");
});
afterEach(async () => {
  for (const file of files.splice(0)) await file.close();
  rmSync(folder, { recursive: true });
  await made.close();
});

const MIB = 1024 * 1024;

function fileOf(name: string, { bytes = MIB, count = 0, isShared = false } = {}): AuditFile {
  const file = new AuditFile(
    { path: join(folder, name), bytes, count },
    { now: () => made.clock.now, isShared },
  );
  files.push(file);
  return file;
}

const change = (name: string) => servicesOf(made, caller).project(name);
const macOf = () => auditMacOf(made.keys);
const exportTo = (sink: AuditSink) => exportAudit(made.store, made.keys, sink);
const jobsOf = (...auditSinks: AuditSink[]) =>
  auditExportJobs({
    store: made.store,
    keys: made.keys,
    auditSinks,
    log: createLog("silent"),
    draining: new AbortController().signal,
  });

/** The lines of files of the folder; first the full ones, in the order of their names, unless some are named. */
function linesOf(name: string): ExportLine[] {
  const full = readdirSync(folder).filter((each) => each.startsWith(`${name}.`));
  return [...full.sort(), name].flatMap((each) => linesIn(each));
}
const linesIn = (name: string): ExportLine[] =>
  readFileSync(join(folder, name), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

/** What the check finds broken, and the ids of the rows. */
function check(lines: readonly ExportLine[]) {
  const found = createExportCheck((keyId, bytes) => made.keys.auditMac(keyId, bytes));
  for (const line of lines) found.add(line);
  return found.end().flatMap(({ broken }) => broken ?? []);
}
const idsOf = (lines: readonly ExportLine[]) => lines.flatMap((line) => ("row" in line ? [line.row.id] : []));

async function allIds(): Promise<string[]> {
  const { audit } = await made.history(caller);
  return audit.map(({ id }) => id);
}

describe("the export to a file", () => {
  test("has each row once, in files of a size whose order is that of their names, for its owner alone", async () => {
    const file = fileOf("audit.jsonl", { bytes: 1_500 });
    for (const name of ["one", "two", "three", "four"]) {
      await change(name);
      expect(await exportTo(file)).toBeGreaterThan(0);
    }
    expect(await exportTo(file)).toBe(0);
    expect(readdirSync(folder).length).toBeGreaterThan(2);
    const lines = linesOf("audit.jsonl");
    expect(check(lines)).toEqual([]);
    const ids = idsOf(lines);
    expect(ids).toEqual(expect.arrayContaining(await allIds()));
    expect(new Set(ids).size).toBe(ids.length);
    expect(statSync(join(folder, "audit.jsonl")).mode & 0o077).toBe(0);
    // Without its second file something is missing, also where the last has no row of the chain.
    const [, second = ""] = readdirSync(folder)
      .filter((each) => each !== "audit.jsonl")
      .sort();
    rmSync(join(folder, second));
    expect(check(linesOf("audit.jsonl"))).not.toEqual([]);
  });

  test("keeps the newest full files, as many as is said", async () => {
    const file = fileOf("audit.jsonl", { bytes: 1, count: 2 });
    for (const name of ["one", "two", "three", "four", "five"]) {
      await change(name);
      await exportTo(file);
    }
    expect(readdirSync(folder)).toHaveLength(3);
    const lines = linesOf("audit.jsonl");
    expect(check(lines)).toEqual([]);
    expect((await allIds()).slice(-2)).toEqual(idsOf(lines).slice(-2));
  });

  test("goes on after it was killed: a part of a line goes, and rows that were not confirmed come again", async () => {
    const file = fileOf("audit.jsonl");
    await exportTo(file);
    const before = await findConfirmed(made.store.reader, macOf(), "file");
    await change("one");
    const killed: AuditSink = {
      target: "file",
      async take(lines, confirmed) {
        await file.take(lines, confirmed);
        throw new Error("killed");
      },
    };
    await expect(exportTo(killed)).rejects.toThrow("killed");
    expect(await findConfirmed(made.store.reader, macOf(), "file")).toEqual(before);
    await file.close();
    appendFileSync(join(folder, "audit.jsonl"), '{"row":{"chain":"0');
    expect(await exportTo(fileOf("audit.jsonl"))).toBeGreaterThan(0);
    const lines = linesOf("audit.jsonl");
    expect(check(lines)).toEqual([]);
    const ids = idsOf(lines);
    expect(new Set(ids).size).toBeLessThan(ids.length);
    expect(ids).toEqual(expect.arrayContaining(await allIds()));
  });

  test("loses a part of a line with the first run after a start, also where no row follows", async () => {
    await exportTo(fileOf("audit.jsonl"));
    appendFileSync(join(folder, "audit.jsonl"), '{"row":{"chain":"0');
    for (const { run } of jobsOf(fileOf("audit.jsonl"), fileOf("other.jsonl"))) await run();
    expect(check(linesOf("audit.jsonl"))).toEqual([]);
    // Nor is an empty file made, which would be no export.
    expect(readdirSync(folder)).toEqual(["audit.jsonl"]);
  });

  test.each([
    ["to the end", 0],
    ["past the end", 1_000_000],
  ])("leaves nothing out where another hand moved its position on %s: it begins again", async (_, past) => {
    const file = fileOf("audit.jsonl");
    await exportTo(file);
    await change("one");
    await tampering(made.dataDir, (raw) =>
      raw.run(`update audit_export set
        sequence = ${past} + (select o.sequence from organization as o where o.id = audit_export.organization_id),
        chain_hash = (select o.chain_hash from organization as o where o.id = audit_export.organization_id)
        where organization_id <> ''`),
    );
    await change("two");
    await exportTo(file);
    const lines = linesOf("audit.jsonl");
    expect(idsOf(lines)).toEqual(expect.arrayContaining(await allIds()));
    expect(check(lines)).toEqual([]);
    expect(await exportTo(file)).toBe(0);
  });

  test("goes on in a new file where the other was moved away", async () => {
    const file = fileOf("audit.jsonl");
    await exportTo(file);
    renameSync(join(folder, "audit.jsonl"), join(folder, "audit.jsonl.0"));
    await change("one");
    await exportTo(file);
    expect(linesIn("audit.jsonl")[0]).toHaveProperty("after");
    expect(check(linesOf("audit.jsonl"))).toEqual([]);
  });

  test("of several servers is whole in the order in which they wrote", async () => {
    const [one, other] = [fileOf("one.jsonl", { isShared: true }), fileOf("other.jsonl", { isShared: true })];
    await exportTo(one);
    await change("one");
    await exportTo(one);
    expect(readdirSync(folder)).toEqual(["one.jsonl"]);
    for (const [name, file] of [
      ["two", other],
      ["three", one],
    ] as const) {
      await change(name);
      await exportTo(file);
    }
    const [first = ""] = readdirSync(folder).filter((each) => each.startsWith("one.jsonl."));
    const [before, between, after] = [linesIn(first), linesIn("other.jsonl"), linesIn("one.jsonl")];
    expect(check([...before, ...between, ...after])).toEqual([]);
    expect(check([...before, ...after])).not.toEqual([]);
  });
});

test("a target that does not answer keeps no other waiting", async () => {
  const answer = Promise.withResolvers<void>();
  const silent: AuditSink = { target: "otlp", take: () => answer.promise };
  const jobs = jobsOf(silent, fileOf("audit.jsonl"));
  const [held, done] = jobs.map(({ run }) => run());
  await done;
  expect(idsOf(linesOf("audit.jsonl"))).toEqual(expect.arrayContaining(await allIds()));
  expect(await findConfirmed(made.store.reader, macOf(), "otlp")).toEqual([]);
  answer.resolve();
  await held;
});

describe("the export to a collector", () => {
  /** Starts a collector that gives these answers, the last of them for good. */
  async function collectorOf(...answers: readonly (readonly [status: number, body: string])[]) {
    const requests: { url: string; lines: ExportLine[] }[] = [];
    const left = [...answers];
    const server = createServer(async (req, res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk);
      const { resourceLogs } = JSON.parse(Buffer.concat(chunks).toString());
      const records = resourceLogs[0].scopeLogs[0].logRecords as { body: { stringValue: string } }[];
      requests.push({ url: req.url ?? "", lines: records.map(({ body }) => JSON.parse(body.stringValue)) });
      const [status, body] = (left.length > 1 ? left.shift() : left[0]) ?? [200, ""];
      res.writeHead(status, { "content-type": "application/json" }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const draining = new AbortController().signal;
    return {
      requests,
      sink: new AuditCollector(url, { now: () => made.clock.now, draining }),
      close: () => new Promise((resolve) => server.close(resolve)),
    };
  }

  test("counts as done when the collector has taken every record, and has what a file has", async () => {
    const refused = '{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}';
    const collector = await collectorOf([503, ""], [200, refused], [200, '{"partialSuccess":{}}']);
    try {
      for (const problem of ["the collector answered 503", "the collector rejected 1 records"]) {
        await expect(exportTo(collector.sink)).rejects.toThrow(problem);
        expect(await findConfirmed(made.store.reader, macOf(), "otlp")).toEqual([]);
      }
      const rows = await exportTo(collector.sink);
      const [one, two, three] = collector.requests;
      expect([one?.url, two, three]).toEqual(["/v1/logs", one, one]);
      expect(idsOf(three?.lines ?? [])).toHaveLength(rows);
      expect(check(three?.lines ?? [])).toEqual([]);
      await change("one");
      await exportTo(collector.sink);
      expect(collector.requests).toHaveLength(4);
      expect(check(collector.requests.slice(2).flatMap(({ lines }) => lines))).toEqual([]);
      // Each target has a position of its own.
      expect(await findConfirmed(made.store.reader, macOf(), "file")).toEqual([]);
    } finally {
      await collector.close();
    }
  });

  test("fails when the collector answers more than the server reads", async () => {
    const withBytes = (count: number) => JSON.stringify({ errorMessage: "" }).padEnd(count, " ");
    const answers = [MAX_RESPONSE_BYTES + 1, MAX_RESPONSE_BYTES].map(
      (count) => [200, withBytes(count)] as const,
    );
    const collector = await collectorOf(...answers);
    try {
      await expect(exportTo(collector.sink)).rejects.toThrow(
        `the response has more than ${MAX_RESPONSE_BYTES} bytes`,
      );
      expect(await findConfirmed(made.store.reader, macOf(), "otlp")).toEqual([]);
      expect(await exportTo(collector.sink)).toBeGreaterThan(0);
    } finally {
      await collector.close();
    }
  });
});

test("what a target has not confirmed is counted over all chains, from its oldest row on", async () => {
  const lag = () => findAuditLag(made.store.reader, "file");
  const begun = await lag();
  expect(begun).toMatchObject({ target: "file", oldestAt: made.clock.now });
  expect(begun.rows).toBe(await exportTo(fileOf("audit.jsonl")));
  expect(await lag()).toEqual({ target: "file", rows: 0, oldestAt: undefined });
  // The other target has nothing.
  expect((await findAuditLag(made.store.reader, "otlp")).rows).toBe(begun.rows);
  const at = made.clock.now + 1_000;
  made.clock.now = at;
  await change("one");
  made.clock.now += 60_000;
  await change("two");
  await made.createOrganization("island");
  const behind = await lag();
  expect(behind.oldestAt).toBe(at);
  const delay = (ms: number) => auditDelay(behind, at + ms);
  expect([delay(299_999), delay(300_000)]).toEqual([undefined, undefined]);
  expect(delay(300_001)).toBe("the target file of the audit export has left a row unconfirmed for 5 minutes");
  expect(behind.rows).toBe(await exportTo(fileOf("audit.jsonl")));
});
