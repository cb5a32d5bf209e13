import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { brokenRules } from "../scripts/layers.ts";
import { stopAll } from "./harness/server.ts";
import { sourceTree } from "./harness/source-tree.ts";

afterAll(stopAll);

/** What is broken in a tree of these files. */
function brokenIn(files: Readonly<Record<string, string>>): string[] {
  return brokenRules(sourceTree(files));
}

const importing = (target: string) => `import { a } from "${target}";\n`;

describe("the layers", () => {
  test("hold in this tree", () => {
    expect(brokenRules(join(import.meta.dirname, ".."))).toEqual([]);
  });

  test.each([
    ["src/domain/a.ts", "../store/b.ts", "domain/ may not reach store/"],
    ["src/domain/a.ts", "../rpc/b.ts", "domain/ may not reach rpc/"],
    ["src/store/a.ts", "../services/b.ts", "store/ may not reach services/"],
    ["src/store/a.ts", "./sqlite/open.ts", "store/ may not reach store/sqlite/"],
    ["src/store/sqlite/a.ts", "../../services/b.ts", "store/sqlite/ may not reach services/"],
    ["src/jobs/a.ts", "../rpc/b.ts", "jobs/ may not reach rpc/"],
    ["src/scm/a.ts", "../store/b.ts", "scm/ may not reach store/"],
    ["src/scm/a.ts", "../jobs/b.ts", "scm/ may not reach jobs/"],
    ["src/jobs/a.ts", "../store/sqlite/b.ts", "jobs/ may not reach store/sqlite/"],
    ["src/services/a.ts", "../rpc/b.ts", "services/ may not reach rpc/"],
    ["src/services/a.ts", "../store/sqlite/b.ts", "services/ may not reach store/sqlite/"],
    ["src/services/deep/a.ts", "../../http/b.ts", "services/ may not reach http/"],
    ["src/rpc/a.ts", "../http/b.ts", "rpc/ may not reach http/"],
    ["src/rpc/a.ts", "../commands/b.ts", "rpc/ may not reach commands/"],
    ["src/rpc/a.ts", "../config.ts", "rpc/ may not reach src/"],
    ["src/http/a.ts", "../store/b.ts", "http/ may not reach store/"],
    ["src/http/a.ts", "../domain/b.ts", "http/ may not reach domain/"],
    ["src/http/a.ts", "../made-up/b.ts", "http/ may not reach made-up/"],
  ])("%s may not import %s", (file, target, rule) => {
    const imported = join(dirname(file), target);
    expect(brokenIn({ [file]: importing(target) })).toEqual([`${file} imports ${imported}: ${rule}`]);
  });

  test("let no service make the error of a rule", () => {
    const breach = (text: string) => brokenIn({ "src/services/a.ts": text });
    const message = "src/services/a.ts throws the error of a rule; rules are functions of domain/";
    expect(breach('throw valueUnusable("a", "b");\n')).toEqual([message]);
    expect(breach('return new DomainError(REASON, "b");\n')).toEqual([message]);
    expect(breach('throw notFound("project");\n')).toEqual([]);
    expect(brokenIn({ "src/domain/a.ts": 'throw valueUnusable("a", "b");\n' })).toEqual([]);
  });

  test.each([
    ["src/domain/a.ts", "kysely"],
    ["src/domain/a.ts", "@connectrpc/connect"],
    ["src/domain/a.ts", "node:fs"],
    ["src/store/a.ts", "node:fs"],
    ["src/store/a.ts", "kysely/migration"],
    ["src/store/sqlite/a.ts", "node:child_process"],
    ["src/scm/a.ts", "node:fs"],
    ["src/scm/a.ts", "node:child_process"],
    ["src/jobs/a.ts", "kysely"],
    ["src/services/a.ts", "@connectrpc/connect-node"],
    ["src/services/a.ts", "kysely"],
    ["src/rpc/a.ts", "kysely"],
    ["src/rpc/a.ts", "node:http"],
    ["src/http/a.ts", "kysely"],
    ["src/http/a.ts", "pino"],
  ])("%s may not import the package %s", (file, target) => {
    expect(brokenIn({ [file]: importing(target) })).toEqual([`${file} imports ${target}`]);
  });

  test.each([
    ["a type", `import type { A } from "../rpc/b.ts";`],
    ["everything", `import * as all from "../rpc/b.ts";`],
    ["nothing but its effects", `import "../rpc/b.ts";`],
    ["it to pass it on", `export { a } from "../rpc/b.ts";`],
    ["it over several lines", `import {\n  a,\n  b,\n} from "../rpc/b.ts";`],
    ["it when it runs", `const { a } = await import("../rpc/b.ts");`],
  ])("are broken also by a file that imports %s", (_, text) => {
    expect(brokenIn({ "src/domain/a.ts": text })).toEqual([
      "src/domain/a.ts imports src/rpc/b.ts: domain/ may not reach rpc/",
    ]);
  });

  test("let each layer use itself, the layers below it and the packages that it is for", () => {
    const files = {
      "src/domain/a.ts": `${importing("./b.ts")}${importing("#gen/service/v1/project_pb.js")}`,
      "src/store/a.ts": `${importing("../domain/b.ts")}${importing("kysely")}${importing("./expressions.ts")}`,
      "src/store/sqlite/a.ts": `${importing("better-sqlite3")}${importing("../store.ts")}const text = sql\`select 1\`;`,
      "src/scm/a.ts": `${importing("../domain/b.ts")}${importing("node:https")}`,
      "src/jobs/a.ts": `${importing("../store/b.ts")}${importing("../scm/b.ts")}${importing("../log.ts")}`,
      "src/services/a.ts": `${importing("../store/b.ts")}${importing("../keys.ts")}`,
      "src/rpc/a.ts": `${importing("../services/b.ts")}${importing("@bufbuild/protovalidate")}`,
      "src/http/a.ts": `${importing("../rpc/b.ts")}${importing("node:http2")}`,
      "src/server.ts": `${importing("./http/b.ts")}${importing("./store/sqlite/open.ts")}${importing("pino")}`,
    };
    expect(brokenIn(files)).toEqual([]);
  });
});

describe("further rules", () => {
  test.each(["Date.now()", "new Date()", "Math.random()"])("the domain may not call %s", (call) => {
    expect(brokenIn({ "src/domain/a.ts": `export const a = () => ${call};\n` })).toEqual([
      "src/domain/a.ts reads a clock or randomness; both are given to domain/",
    ]);
    expect(brokenIn({ "src/services/a.ts": `export const a = () => ${call};\n` })).toEqual([]);
  });

  test.each([
    ["src/store/a.ts", "export const a = sql`select 1`;\n"],
    ["src/services/a.ts", "export const a = sql`select 1`;\n"],
  ])("%s may hold no SQL of one engine", (file, text) => {
    expect(brokenIn({ [file]: text })).toEqual([
      `${file} writes SQL of one engine; that belongs in store/sqlite`,
    ]);
  });

  test.each(["rowid", "searchTrigrams(text)", "enterText"])("only the engine may name %s", (text) => {
    const files = { "src/store/a.ts": `${text};\n`, "src/store/sqlite/a.ts": `${text};\n` };
    expect(brokenIn(files)).toEqual([
      "src/store/a.ts names how the engine indexes texts; that belongs in store/sqlite",
    ]);
  });

  test("only the engine's own folder may load the engine", () => {
    expect(brokenIn({ "src/store/a.ts": importing("better-sqlite3") })).toEqual([
      "src/store/a.ts writes SQL of one engine; that belongs in store/sqlite",
      "src/store/a.ts imports better-sqlite3",
    ]);
  });

  test.each(["process.env.HOME", "process.exit(1)", "process.hrtime()"])(
    "only src/main.ts may use %s",
    (use) => {
      const text = `export const a = () => ${use};\n`;
      expect(brokenIn({ "src/server.ts": text, "src/main.ts": text })).toEqual([
        "src/server.ts touches process; only src/main.ts does",
      ]);
    },
  );

  test("only src/main.ts may import process", () => {
    const text = `import process from "node:process";\n`;
    expect(brokenIn({ "src/commands/a.ts": text, "src/main.ts": text })).toEqual([
      "src/commands/a.ts touches process; only src/main.ts does",
    ]);
  });

  test("a file may have 300 lines and no more, be it a test or not", () => {
    const lines = (count: number) => "// line\n".repeat(count);
    expect(
      brokenIn({ "src/a.ts": lines(301), "src/domain/b.test.ts": lines(301), "src/c.ts": lines(300) }).sort(),
    ).toEqual([
      "src/a.ts has 301 lines; more than 300 are two ideas in one",
      "src/domain/b.test.ts has 301 lines; more than 300 are two ideas in one",
    ]);
  });

  test("an area may use those before it and none after it", () => {
    const files = {
      "src/services/agent/a.ts": importing("../workflow/b.ts"),
      "src/services/workflow/deep/a.ts": importing("../../agent/b.ts"),
      "src/services/identity/a.ts": importing("../../store/record/b.ts"),
      "src/services/call/a.ts": `${importing("../../store/record/b.ts")}${importing("../../store/policy/b.ts")}`,
      "src/domain/error.ts": importing("./identity/b.ts"),
      "src/domain/runner/a.ts": importing("../source/b.ts"),
      "src/services/access/a.ts": importing("../agent/b.ts"),
      "src/store/schema.ts": importing("./agent/b.ts"),
      "src/jobs/a.ts": importing("../services/access/b.ts"),
    };
    expect(brokenIn(files).sort()).toEqual([
      "src/domain/error.ts imports src/domain/identity/b.ts: the area identity comes later",
      "src/services/call/a.ts imports src/store/policy/b.ts: the area policy comes later",
      "src/services/identity/a.ts imports src/store/record/b.ts: the area record comes later",
      "src/services/workflow/deep/a.ts imports src/services/agent/b.ts: the area agent comes later",
    ]);
  });

  test.each(["../store/query-builder.ts", "../store/schema.ts", "../store/runner/runner-schema.ts"])(
    "only store/ may build queries: nothing else imports %s",
    (target) => {
      expect(
        brokenIn({ "src/jobs/a.ts": importing(target), "src/store/a.ts": importing("./schema.ts") }),
      ).toEqual([`src/jobs/a.ts imports ${join("src/jobs", target)}: only store/ builds queries`]);
    },
  );

  test("a folder may have 25 files and no more", () => {
    const files = (folder: string, count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`${folder}/f${index}.ts`, "// file\n"]),
      );
    expect(brokenIn({ ...files("src/a", 25), ...files("src/a/b", 26) })).toEqual([
      "src/a/b has 26 files; more than 25 hide their order",
    ]);
  });

  test("unit tests may import what they need and start processes", () => {
    const text = `${importing("../rpc/b.ts")}${importing("node:fs")}const path = process.execPath; Date.now();\n`;
    expect(brokenIn({ "src/domain/a.test.ts": text })).toEqual([]);
  });

  test("every breach of a tree is reported, not only the first", () => {
    const files = {
      "src/domain/a.ts": `${importing("../store/b.ts")}${importing("kysely")}Date.now();\n`,
      "src/rpc/a.ts": importing("../http/b.ts"),
    };
    expect(brokenIn(files)).toHaveLength(4);
  });

  test("what is no TypeScript source is left alone", () => {
    expect(
      brokenIn({ "src/domain/readme.md": importing("../store/b.ts"), "test/a.ts": "process.exit(1)" }),
    ).toEqual([]);
  });
});
