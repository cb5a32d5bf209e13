import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import type { AnchorFacts, AuditAnchor } from "../audit-anchor.ts";
import { auditBound, findLastOld, lastRemovable } from "./audit-ageing.ts";
import { anchorBytes, anchorOf, anchorProblem, namedAnchor } from "./audit-anchor.ts";
import type { AuditMac } from "./audit-verification.ts";

const mac: AuditMac = (keyId, bytes) =>
  keyId === "one" ? createHmac("sha256", keyId).update(bytes).digest() : undefined;

function sealed(facts: Partial<AnchorFacts> = {}, key_id = "one"): AuditAnchor {
  const anchor = {
    organization_id: "0190-harbour",
    sequence: 3,
    chain_hash: new Uint8Array(32).fill(1),
    rows: 3,
    until_sequence: 5,
    at: 1_000,
    key_id,
    ...facts,
  };
  return { ...anchor, hash: mac(key_id, anchorBytes(anchor)) ?? new Uint8Array() };
}

describe("an anchor", () => {
  test("holds as it was sealed, also through an export", () => {
    for (const anchor of [sealed(), sealed({ chain_hash: null }), sealed({ sequence: 0, rows: 0 })]) {
      expect(anchorProblem(anchor, mac)).toBeUndefined();
      expect(anchorProblem(anchorOf(JSON.parse(JSON.stringify(namedAnchor(anchor)))), mac)).toBeUndefined();
    }
  });

  test.each<Partial<AuditAnchor>>([
    { organization_id: "0190-lighthouse" },
    { sequence: 4 },
    { chain_hash: null },
    { chain_hash: new Uint8Array(32) },
    { chain_hash: new Uint8Array(31).fill(1) },
    { rows: 2 },
    { until_sequence: 6 },
    { at: 1_001 },
    { hash: new Uint8Array(32) },
    { hash: sealed().hash.subarray(0, 31) },
  ])("breaks where it was changed: %p", (change) => {
    expect(anchorProblem({ ...sealed(), ...change }, mac)?.problem).toBe(
      "its anchor was changed: it does not match its seal",
    );
  });

  test("breaks where its key is unknown, and where its numbers do not fit", () => {
    expect(anchorProblem(sealed({}, "other"), mac)?.problem).toContain("with the key other");
    expect(anchorProblem(sealed({ rows: 2 }), mac)?.problem).toBe(
      "its anchor is inconsistent: it counts 2 rows up to row 3, and plans removal up to row 5",
    );
    expect(anchorProblem(sealed({ until_sequence: 2 }), mac)?.problem).toContain("plans removal up to row 2");
  });
});

describe("what may go", () => {
  test.each([
    [0, undefined],
    [1, 90],
    [89, 90],
    [90, 90],
    [91, 91],
  ])("by days, of a setting of %i, is never younger than the floor", (days, past) => {
    const now = Date.UTC(2026, 0, 1);
    expect(auditBound(days, now)).toBe(past && now - past * 24 * 3_600_000);
  });

  test.each([
    [999, [999], 0],
    [1_000, [1_000], 0],
    [1_001, [1_001], 1],
    [5_000, [3_000, 20], 20],
    [5_000, [3_000, 0], 0],
    [5_000, [], 0],
  ])("by place, of %i rows of which %p are confirmed, ends with %i", (head, confirmed, last) => {
    expect(lastRemovable(head, confirmed)).toBe(last);
  });

  test.each([
    [0, 0, 9, 0],
    [0, 7, 0, 0],
    [0, 7, 3, 3],
    [0, 7, 9, 7],
    [5, 7, 5, 5],
    [5, 7, 6, 6],
    [8, 7, 9, 8],
  ])("by age, after %i up to %i with %i old ones, ends with %i", async (after, last, old, found) => {
    expect(await findLastOld(after, last, async (sequence) => sequence <= old)).toBe(found);
  });
});
