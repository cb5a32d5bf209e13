// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names of secrets are written so.
import { describe, expect, test } from "@jest/globals";
import { mcpServers, secretNames, withSecrets } from "./mcp-server.ts";

describe("servers of the Model Context Protocol", () => {
  test("are a command or a URL, with variables or headers", () => {
    expect(
      mcpServers([
        "files=mcp-files --root .",
        'shell=["sh", "-c", "exec mcp"]',
        "docs=https://docs.example.org/mcp?a=b",
        '{"name": "db", "command": ["mcp-db"], "env": {"DB_KEY": "${secret:DB_KEY}"}}',
        '{"name": "web", "url": "http://127.0.0.1/", "headers": {"X-Key": "a ${secret:ONE}${secret:GIT_TOKEN}"}}',
      ]),
    ).toEqual([
      { name: "files", command: ["mcp-files", "--root", "."], url: "", values: {} },
      { name: "shell", command: ["sh", "-c", "exec mcp"], url: "", values: {} },
      { name: "docs", command: [], url: "https://docs.example.org/mcp?a=b", values: {} },
      { name: "db", command: ["mcp-db"], url: "", values: { DB_KEY: "${secret:DB_KEY}" } },
      {
        name: "web",
        command: [],
        url: "http://127.0.0.1/",
        values: { "X-Key": "a ${secret:ONE}${secret:GIT_TOKEN}" },
      },
    ]);
  });

  test.each([
    ["words", "write NAME=COMMAND"],
    ["=words", "its name"],
    ["a b=words", "its name"],
    ["a=", "must name a program"],
    ["a=b | c", "without a shell"],
    ["a=https://ann:key@docs.example.org", "no password"],
    ["a=https://docs.example.org/${secret:KEY}", "allowed only in env or headers"],
    ['a=["mcp", "${secret:KEY}"]', "allowed only in env or headers"],
    [`a=https://docs.example.org/${"x".repeat(2_048)}`, "2048 characters"],
    ["{", "is not one"],
    ['{"name": "a"}', "either a command or a url"],
    ['{"name": "a", "command": ["b"], "url": "https://c.example.org"}', "either a command or a url"],
    ['{"name": "a", "command": ["b"], "headers": {}}', "env goes with a command"],
    ['{"name": "a", "url": "https://c.example.org", "env": {}}', "env goes with a command"],
    ['{"name": "a", "command": ["b"], "key": "c"}', "it has no key"],
    ['{"name": 1, "command": ["b"]}', "are texts"],
    ['{"name": "a", "command": "b"}', "must name a program|words only|without a shell|JSON"],
    ['{"name": "a", "command": ["b"], "env": {"A": 1}}', "objects with texts"],
    ['{"name": "a", "command": ["b"], "env": {"A B": "c"}}', "no name of a variable"],
    ['{"name": "a", "command": ["b"], "env": {"A": "c\\nd"}}', "control characters"],
    ...["PATH", "LANG", "GIT_AUTHOR_NAME", "1ST", "AB", "A".repeat(128)].map((name) => [
      `{"name": "a", "command": ["b"], "env": {"A": "\${secret:${name}}"}}`,
      "no name of a secret",
    ]),
    [
      '{"name": "a", "command": ["b"], "env": {"A": "${secret:CHARTROOM_ENVIRONMENT_TOKEN}"}}',
      "no name of a secret",
    ],
    ['{"name": "a", "command": ["b"], "env": {"A": "${secret:}"}}', "no name of a secret"],
  ])("are refused: %s", (text, why) => {
    expect(() => mcpServers([text])).toThrow(new RegExp(why));
  });

  test("have different names, and are 16 at most", () => {
    expect(() => mcpServers(["a=b", "a=c"])).toThrow(/same name/);
    const many = [...Array(17).keys()].map((number) => `server-${number}=mcp`);
    expect(mcpServers(many.slice(1))).toHaveLength(16);
    expect(() => mcpServers(many)).toThrow(/16 are the most/);
  });

  test("get the values of the secrets that they name", () => {
    expect(secretNames("a ${secret:A}${secret:B} ${C}")).toEqual(["A", "B"]);
    expect(withSecrets("a ${secret:A} ${C}", (name) => `<${name}>`)).toBe("a <A> ${C}");
  });
});
