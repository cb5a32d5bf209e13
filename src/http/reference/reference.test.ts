import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import type { DocumentView } from "./document.ts";
import { paragraphs } from "./html.ts";
import { curl, failuresPage, indexPage, servicePage } from "./operation-pages.ts";
import { schemaPage } from "./schema-page.ts";

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../gen/openapi.json"), "utf8"),
) as DocumentView;

/** Every page, by its path. */
const pages = new Map<string, string>([
  ["/docs/api", indexPage(document)],
  ["/docs/api/failures", failuresPage(document)],
  ...document.tags.map(({ name }) => [`/docs/api/${name}`, servicePage(document, name) ?? ""] as const),
  ...Object.keys(document.components.schemas).map(
    (name) => [`/docs/api/types/${name}`, schemaPage(document, name) ?? ""] as const,
  ),
]);

test("each link leads to a page, and to a place that is on it", () => {
  const broken: string[] = [];
  for (const [path, page] of pages) {
    for (const [, target = ""] of page.matchAll(/href="([^"]*)"/g)) {
      const [to = "", place] = target.split("#");
      const there = pages.get(to || path);
      const isOther = /^\/$|^\/openapi\.json$|^\/docs\/api\/reference\.css$/.test(to);
      const isThere = place === undefined ? isOther || there : there?.includes(`id="${place}"`);
      if (!isThere) broken.push(`${path}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test("each operation has a call to paste, and is found by its name", () => {
  for (const [path, { post }] of Object.entries(document.paths)) {
    const page = pages.get(`/docs/api/${post.tags[0]}`);
    expect(page).toContain(`curl http://127.0.0.1:8080/api${path} \\`);
    expect(pages.get("/docs/api")).toContain(`data-words="${post.operationId.toLowerCase()} `);
  }
});

test("what the document says is text, also where it looks like a tag or ends a quotation", () => {
  expect(paragraphs('<img src=x> & "`<b>`"\n\nlist:\n- one\n- two')).toBe(
    "<p>&lt;img src=x&gt; &amp; &quot;<code>&lt;b&gt;</code>&quot;</p>\n<p>list:</p><ul><li>one</li><li>two</li></ul>",
  );
  expect(curl("/x", { a: "it's" })).toContain(`"a": "it'\\''s"`);
  expect(servicePage(document, "constructor") ?? schemaPage(document, "constructor")).toBeUndefined();
});
