import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { DataConfig } from "../../config/config.ts";
import type { ExportLine, NamedHead } from "../../domain/record/audit-export.ts";
import { createExportCheck } from "../../domain/record/audit-export-check.ts";
import { exportChains } from "../../store/record/audit-chain.ts";
import { openDataReadOnly } from "../open-read-only.ts";
import { StartError } from "../start-error.ts";
import { lineOf, loadAuditMac, type Verdict } from "./audit.ts";

/**
 * Prints the audit log as JSON lines, from one snapshot of the data.
 *
 * @param since an earlier export; this one starts after its end
 * @throws StartError when the data or the earlier export cannot be read
 */
export async function exportAudit(
  config: DataConfig,
  since: string | undefined,
  print: (text: string) => void,
): Promise<void> {
  const after = since === undefined ? [] : await headsOf(since);
  const store = await openDataReadOnly(config);
  try {
    for await (const line of exportChains(store.reader, after)) print(`${JSON.stringify(line)}\n`);
  } finally {
    await store.close();
  }
}

/**
 * Returns the heads that a file has reached: those at the end of an export, or of an audit file that a server appends
 * to.
 */
async function headsOf(file: string): Promise<readonly NamedHead[]> {
  let heads: readonly NamedHead[] | undefined;
  const reached = new Map<string | null, NamedHead>();
  let isContinuous = false;
  for await (const line of linesOf(file)) {
    heads = "heads" in line ? line.heads : undefined;
    if ("reached" in line) isContinuous = true;
    const ends = "reached" in line ? line.reached : "after" in line ? line.after : [];
    // Rows that were repeated after a kill do not move a chain back.
    for (const head of ends)
      if (head.sequence >= (reached.get(head.chain)?.sequence ?? 0)) reached.set(head.chain, head);
  }
  if (heads) return heads;
  if (isContinuous) return [...reached.values()];
  throw new StartError(
    `${file} does not end with the heads of the chains: it is not an export, or only part of one`,
  );
}

/**
 * Checks consecutive exports.
 *
 * @throws StartError when a file or the key file cannot be read
 */
export async function checkExports(config: DataConfig, files: readonly string[]): Promise<Verdict> {
  const check = createExportCheck(loadAuditMac(config));
  for (const file of files) for await (const line of linesOf(file)) check.add(line);
  const chains = check.end();
  const broken = chains.filter((chain) => chain.broken).length;
  const sum = broken === 0 ? "nothing is missing" : `${broken} of ${chains.length} chains are broken`;
  const lines = chains.map(
    ({ first, ...chain }) => lineOf(chain) + (first > 1 ? `; from row ${first} on` : ""),
  );
  return { holds: broken === 0, text: `${[...lines, sum].join("\n")}\n` };
}

async function* linesOf(file: string): AsyncGenerator<ExportLine> {
  let number = 0;
  try {
    for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
      number += 1;
      yield parsed(text);
    }
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new StartError(`${file} cannot be read: line ${number} is no line of an export`);
    if (typeof (error as NodeJS.ErrnoException).code !== "string") throw error;
    throw new StartError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

const isTextOrNull = (value: unknown) => value === null || typeof value === "string";
const isNumber = (value: unknown) => Number.isSafeInteger(value);
const TEXTS = ["id", "at", "actorId", "operation", "subjectType", "subjectId", "reason", "diff"];

const isRow = (row: Record<string, unknown>) =>
  TEXTS.every((name) => typeof row[name] === "string") &&
  ["chain", "keyId", "previousHash", "hash"].every((name) => isTextOrNull(row[name])) &&
  isNumber(row.sequence) &&
  isNumber(row.actorPrincipal);

const isHead = (head: Record<string, unknown>) =>
  isTextOrNull(head.chain) && isTextOrNull(head.hash) && isNumber(head.sequence);

const isAnchor = (anchor: Record<string, unknown>) =>
  ["chain", "keyId", "seal"].every((name) => typeof anchor[name] === "string") &&
  isTextOrNull(anchor.hash) &&
  ["sequence", "rows", "until", "at"].every((name) => isNumber(anchor[name]));

/** @throws SyntaxError for anything but a line of an export */
function parsed(text: string): ExportLine {
  const line = JSON.parse(text) ?? {};
  const heads = line.heads ?? line.reached ?? line.after;
  const anchors = line.anchors ?? [];
  const isBegun = Array.isArray(anchors) && anchors.every((each) => each && isAnchor(each));
  if (
    line.row
      ? isRow(line.row)
      : isBegun && Array.isArray(heads) && heads.every((each) => each && isHead(each))
  )
    return line;
  throw new SyntaxError("no line of an export");
}
