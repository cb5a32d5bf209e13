import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { stopAll } from "../harness/server.ts";
import { type CopiedWorld, worldToCopy } from "./copied-world.ts";
import { everyOperation } from "./every-operation.ts";
import { withPlaceholders } from "./placeholders.ts";

const FOLDER = join(import.meta.dirname, "golden");
const HOW_TO_REWRITE =
  "When the change is meant, rewrite the files with `GOLDEN=write npm test -- test/e2e/golden` and review each line that changed.";

const isWriting = process.env.GOLDEN === "write";

let copyWorld: () => Promise<CopiedWorld>;
/** The world of all operations that only read. */
let forReads: CopiedWorld;
beforeAll(async () => {
  copyWorld = await worldToCopy("Reads");
  forReads = await copyWorld();
});
afterAll(async () => {
  await stopAll();
  // The check of the whole repository wants files in this form.
  if (isWriting)
    execFileSync(join(import.meta.dirname, "../../node_modules/.bin/biome"), ["format", "--write", FOLDER]);
});

const operations = everyOperation();
const fileOf = (name: string) => `${name.replace("/", ".")}.json`;

describe("the answer in JSON", () => {
  test.each(operations)("of %s is the one on file", async (name, operation) => {
    const isRead = operation.method.idempotency === Idempotency.NO_SIDE_EFFECTS;
    // A world of its own for each that writes, so that no answer depends on the calls before it.
    const { server, token, world } = isRead ? forReads : await copyWorld();
    // Its runner was heard meanwhile, as one that is there is.
    if (isRead) expect((await post(server, "WorkService/Heartbeat", {}, world.runnerToken)).status).toBe(200);
    const request = operation.request(world);
    const { status, body } = await post(server, name, request, operation.token?.(world) ?? token);
    const usual = operation.built ? [200, undefined] : [501, "unimplemented"];
    expect([status, body.code]).toEqual(operation.refusal ?? usual);
    if (!isRead) await server.stop();
    compare(fileOf(name), withPlaceholders({ request, status, answer: body }));
  });

  test("is on file for no operation that is none", () => {
    const known = operations.map(([name]) => fileOf(name)).toSorted();
    same(readdirSync(FOLDER).toSorted(), known);
  });
});

function compare(name: string, actual: unknown): void {
  const file = join(FOLDER, name);
  if (isWriting) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, `${JSON.stringify(actual, null, 2)}\n`);
  }
  const expected = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : "no file";
  same(actual, expected);
}

/** A failure says what to do when it is none. */
function same(actual: unknown, expected: unknown): void {
  try {
    expect(actual).toEqual(expected);
  } catch (difference) {
    throw new Error(`${(difference as Error).message}\n\n${HOW_TO_REWRITE}`);
  }
}
