import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { EVENT_KINDS } from "../../src/domain/access/event-subscription/event-kinds.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/webhooks-out.md"), "utf8");

test("docs/webhooks-out.md names every kind of event, or its resource", () => {
  const plain = EVENT_KINDS.filter((kind) => /\.(created|updated|deleted)$/.test(kind));
  const resources = new Set(plain.map((kind) => kind.slice(0, kind.indexOf("."))));
  const moments = EVENT_KINDS.filter((kind) => !plain.includes(kind));
  expect([...resources, ...moments].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
