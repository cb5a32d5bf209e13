import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { readFolder, valueAt } from "./folder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "chartroom-files-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a file below the folder and returns its path. */
function write(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe("a folder of files", () => {
  test("has the documents of YAML and JSON below it, with the line of each field", () => {
    const yaml = write("a/groups.yaml", "kind: Group\nname: one\n---\n# second\nkind: Group\nname: two\n");
    write(
      "b.json",
      '{\n  "kind": "Group",\n  "name": "three",\n  "annotations": {"values": {"a": "b"}}\n}\n',
    );
    write("notes.txt", "kind: Group");
    write(".hidden/c.yaml", "kind: Group");
    const documents = readFolder(folder);
    expect(documents.map(({ content }) => content.name)).toEqual(["one", "two", "three"]);
    expect(documents.map(({ file }) => file)).toEqual([yaml, yaml, join(folder, "b.json")]);
    expect(documents.map((each) => each.lineOf(["name"]))).toEqual([2, 6, 3]);
    expect(documents.at(2)?.lineOf(["annotations", "values", "a"])).toBe(4);
    // A missing field has the line of its parent.
    expect(documents.at(1)?.lineOf(["description"])).toBe(5);
  });

  test("may be one file, whose fields may have the names of the contract", () => {
    const file = write("one.yml", "kind: Project\ndevcontainer_file_path: a/b.json\n");
    const [document] = readFolder(file);
    expect(document && valueAt(document.content, ["devcontainerFilePath"])).toBe("a/b.json");
    expect(document?.lineOf(["devcontainerFilePath"])).toBe(2);
  });

  test("names the file and the line of everything that it cannot read", () => {
    const first = write("a.yaml", "kind: Group\nname: one\nname: two\n");
    const second = write("b.yaml", "- a list\n---\nname: without a kind\n");
    expect(() => readFolder(folder)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(
          new RegExp(
            `^the files have problems:\n${first}:\\d: is no YAML: .+\n${second}:1: takes an object.+\n${second}:3: kind: is missing`,
          ),
        ),
      }),
    );
  });

  test.each([
    "cr_pat_0123456789abcdefghij",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "https://someone:password1@git.example.org/a.git",
  ])("takes no secret, and does not repeat it: %s", (secret) => {
    const file = write("a.yaml", `kind: Workflow\nmetadata:\n  name: one\n  description: "${secret}"\n`);
    let message = "";
    try {
      readFolder(folder);
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toBe(`${file}:4: metadata.description: holds a secret, which does not belong into files`);
  });

  test("is not read where a tag is not known: what follows it is no value", () => {
    write("a.yaml", "kind: Group\nname: !env NAME\n");
    expect(() => readFolder(folder)).toThrow("a.yaml:2: is no YAML: Unresolved tag: !env");
  });

  test("has no links, which could lead out of it, or around in it", () => {
    write("a/groups.yaml", "kind: Group\nname: one\n");
    write("elsewhere.txt", "kind: Group\nname: two\n");
    symlinkSync(join(folder, "elsewhere.txt"), join(folder, "a", "notes"));
    expect(readFolder(folder).map(({ content }) => content.name)).toEqual(["one"]);
    for (const [name, target] of [
      ["b.yaml", join(folder, "elsewhere.txt")],
      ["again", folder],
    ] as const) {
      const link = join(folder, "a", name);
      symlinkSync(target, link);
      expect(() => readFolder(folder)).toThrow(`${link} is a link, and links are not followed`);
      rmSync(link);
    }
  });

  test("tells of its problems in lines of their own, without what would control a terminal", () => {
    write("a.yaml", 'kind: Group\n"\\e[31m\\nname": "https://a:b@c"\n');
    expect(() => readFolder(folder)).toThrow("a.yaml:2: \u{fffd}[31m name: holds a secret");
  });

  test("is not read where aliases have no end", () => {
    const lines = ["kind: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (let at = 1; at < 10; at += 1)
      lines.push(
        `k${at}: &a${at} [${Array(10)
          .fill(at === 1 ? "*a" : `*a${at - 1}`)
          .join(", ")}]`,
      );
    write("a.yaml", lines.join("\n"));
    expect(() => readFolder(folder)).toThrow(
      "has aliases that name nothing, have no end, or are more than 100",
    );
    write("a.yaml", "kind: Group\nname: one\nannotations: &a {values: *a}\n");
    expect(() => readFolder(folder)).toThrow("a.yaml:1: has aliases");
  });
});
