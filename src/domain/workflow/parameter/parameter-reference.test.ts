// biome-ignore-all lint/suspicious/noTemplateCurlyInString: programs for sh contain ${ } that are
// not template placeholders.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { runShells, SHELLS } from "../../../../test/harness/shell.ts";
import { parameterVariable, withReferences } from "./parameter-reference.ts";

const VALUES: Readonly<Record<string, string>> = {
  "a command substitution": "$(id)",
  backquotes: "`id`",
  "single quotes": "it's 'quoted'",
  "double quotes": 'say "hi"',
  "a quote and a command": "'; rm -rf x",
  "a double quote and a command": '"; rm -rf x; "',
  newlines: "a\nb\n\nE\nEOF\nc",
  "a newline at its end": "a\n\n",
  "a pattern": "*",
  "patterns and blanks": "  f?  [a-z]*\t* ",
  "a leading dash": "-n",
  "leading dashes": "--help",
  backslashes: "a\\b\\\\c\\n\\",
  "variables and braces": "$HOME ${HOME} $$ $1 }",
  operators: "a & b | c ; d > e < f # g ( h ) {i,j} ~ !k",
  "an expression": "{{ .Parameters.p }}",
  arithmetic: "a[$(id >&2)]",
  nothing: "",
  unicode: "żółć 😀 \u00a0\u2028 e\u0301",
  "control characters": "\x01\x07\x1b[31m\r\x7f",
  "8,192 characters": `${"😀'\"$(".repeat(1_638)}ab`,
};

/**
 * Programs that write the value to the file out, by the position of the expression, which `@`
 * represents.
 */
const PLACES: Readonly<Record<string, string>> = {
  unquoted: "printf %s @ >out",
  "in double quotes": 'printf %s "@" >out',
  "in single quotes": "printf %s '@' >out",
  "in an assignment": 'v=@; printf %s "$v" >out',
  "in the assignment of one command": `v=@ sh -c 'printf %s "$v"' >out`,
  "in an export": 'export v=@; printf %s "$v" >out',
  "in a here-document": `v=$(cat <<E\n@.\nE\n); printf %s "\${v%.}" >out`,
  "in a here-document that drops tabs": `v=$(cat <<-E\n\t@.\n\tE\n); printf %s "\${v%.}" >out`,
  "in a second here-document": `v=$(cat <<'E'; cat <<F\na\nE\n@.\nF\n); v=\${v#a}; v=\${v#?}; printf %s "\${v%.}" >out`,
  "in a substitution": `v=$(printf %s. @); printf %s "\${v%.}" >out`,
  "in quotes in a quoted substitution": `v="$(printf %s. "@")"; printf %s "\${v%.}" >out`,
  "in single quotes in a quoted substitution": `v="$(printf %s. '@')"; printf %s "\${v%.}" >out`,
  "in a default": "printf %s ${v:-@} >out",
  "in a quoted default": 'printf %s "${v:-@}" >out',
  "in single quotes in a default": "printf %s ${v:-'@'} >out",
  "in an alternative": "v=1; printf %s ${v:+@} >out",
  "in an assigned default": ': "${v:=@}"; printf %s "$v" >out',
  "in a pattern that is cut off": 'v=@@; printf %s "${v#@}" >out',
  "in a pattern that is cut off the end": 'v=@@; printf %s "${v%"@"}" >out',
  "in the pattern of a case": "case @ in x@|@x) ;; @) printf %s @ >out;; esac",
  "in the list of a loop": 'for v in @; do printf %s "$v" >out; done',
  "in an argument of a function": 'f() { printf %s "$1" >out; }; f @',
  "in a subshell": "( printf %s @ >out )",
  "in a condition": "if [ x@ = 'x@' ]; then printf %s @ >out; fi",
  "after a comment": "# it's @ \"\nprintf %s @ >out # '@'",
  "after what looks like quotes": `: "it's" '"' \\' \\" $'a'; printf %s "@" >out`,
};

describe.each(SHELLS.map((shell) => [shell.join(" "), shell] as const))("%s", (_, shell) => {
  let folder: string;
  /** A folder for each value. */
  const folderOf = (position: number) => join(folder, String(position));
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "chartroom-parameter-"));
    for (const position of Object.keys(VALUES).keys()) {
      mkdirSync(join(folderOf(position), "x"), { recursive: true });
      writeFileSync(join(folderOf(position), "f1"), "");
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each(Object.entries(PLACES))("reads every value literally %s", (_place, written) => {
    const { command, keys } = withReferences(written.replaceAll("@", "{{ .Parameters.p }}"), "place");
    expect(keys).toEqual(["p"]);
    const values = [...Object.entries(VALUES).entries()];
    for (const [position] of values) rmSync(join(folderOf(position), "out"), { force: true });
    const runs = runShells(
      values.map(([position, [, value]]) => ({
        shell,
        command,
        environment: { [parameterVariable("p")]: value },
        cwd: folderOf(position),
      })),
    );
    for (const [position, [name, value]] of values) {
      const run = runs[position];
      const out = run?.status === 0 ? readFileSync(join(folderOf(position), "out"), "utf8") : undefined;
      expect({ name, errors: run?.errors, out }).toEqual({ name, errors: "", out: value });
      expect(readdirSync(folderOf(position)).sort()).toEqual(["f1", "out", "x"]);
    }
  });
});

test("the longest value has 8,192 characters", () => {
  expect([...(VALUES["8,192 characters"] ?? "")]).toHaveLength(8_192);
});
