// biome-ignore-all lint/suspicious/noTemplateCurlyInString: programs for sh contain ${ } that are
// not template placeholders.
import { describe, expect, test } from "@jest/globals";
import { cpuMs } from "../../../../test/harness/cpu-time.ts";
import { withReferences } from "../parameter/parameter-reference.ts";

/** `@` represents the expression, and `${CHARTROOM_PARAMETER_p}` in the result. */
const render = (command: string) =>
  withReferences(command.replaceAll("@", "{{ .Parameters.p }}"), "place").command.replaceAll(
    "${CHARTROOM_PARAMETER_p}",
    "@",
  );

describe("an expression becomes a reference fitted to its place", () => {
  test.each([
    ["unquoted", "cat @", 'cat "@"'],
    ["inside a word", "cat a@b", 'cat a"@"b'],
    ["as a command's name", "@ x", '"@" x'],
    ["in an assignment", "A=@; export B=@", 'A="@"; export B="@"'],
    ["in a redirection", "cat <@ >@ 2>>@", 'cat <"@" >"@" 2>>"@"'],
    ["after $ and a name", "cat $v@", 'cat $v"@"'],
    ["after a special parameter", "cat $$@ $#@ $1@", 'cat $$"@" $#"@" $1"@"'],
    ["after two backslashes", "cat \\\\@", 'cat \\\\"@"'],
    ["after a continued line", "cat a\\\n@", 'cat a\\\n"@"'],
    ["in double quotes", 'cat "a @ b"', 'cat "a @ b"'],
    ["in double quotes with escapes", 'cat "\\"@\\\\@"', 'cat "\\"@\\\\@"'],
    ["in double quotes with apostrophes", `cat "it's @"`, `cat "it's @"`],
    ["in single quotes", "cat 'a @ b'", `cat 'a '"@"' b'`],
    ["in single quotes after a backslash and a dollar", "cat '\\@$@'", `cat '\\'"@"'$'"@"''`],
    ["in single quotes with double ones", `cat '"@"'`, `cat '"'"@"'"'`],
    ["in a substitution", "cat $(echo @)", 'cat $(echo "@")'],
    ["in a substitution in double quotes", `cat "$(echo @ "@" '@')"`, `cat "$(echo "@" "@" ''"@"'')"`],
    ["after a substitution in double quotes", 'cat "$(echo ")")@"', 'cat "$(echo ")")@"'],
    ["after backquotes", "cat `echo \\`a\\``@", 'cat `echo \\`a\\``"@"'],
    ["in a default", "cat ${v:-@}", 'cat ${v:-"@"}'],
    ["in a default in double quotes", `cat "\${v:-it's @}@"`, `cat "\${v:-it's @}@"`],
    ["in quotes in a default", `cat \${v:-"@" '@'}`, `cat \${v:-"@" ''"@"''}`],
    ["in a pattern", "cat ${v#@} ${v%%'@'}", `cat \${v#"@"} \${v%%''"@"''}`],
    ["in a pattern in double quotes", `cat "\${v#@'}'}@"`, `cat "\${v#"@"'}'}@"`],
    ["in a substitution in a default in double quotes", 'cat "${v:-$(echo @)}"', 'cat "${v:-$(echo "@")}"'],
    [
      "after braces without a word",
      "cat ${v}@ ${#v}@ ${#}@ ${v/a/b}@",
      'cat ${v}"@" ${#v}"@" ${#}"@" ${v/a/b}"@"',
    ],
    ["after arithmetic", "cat $((1 + (2)))@", 'cat $((1 + (2)))"@"'],
    ["after $'...' and $\"...\"", `cat $'a'@ $"@"`, `cat $'a'"@" $"@"`],
    ["in a comment", "# it's @\ncat @", '# it\'s @\ncat "@"'],
    ["after a # that begins no comment", "cat a#'@'", `cat a#''"@"''`],
    ["in a here-document", "cat <<E\n'@' \"@\"\nE\ncat '@'", `cat <<E\n'@' "@"\nE\ncat ''"@"''`],
    [
      "in a here-document whose tabs are stripped",
      "cat <<-E\n\t@\n\tE\ncat @",
      'cat <<-E\n\t@\n\tE\ncat "@"',
    ],
    ["in a substitution in a here-document", "cat <<E\n$(echo @ '@')\nE", `cat <<E\n$(echo "@" ''"@"'')\nE`],
    ["on the line of a here-document", "cat <<E @\n@\nE", 'cat <<E "@"\n@\nE'],
    [
      "in the second of two here-documents",
      "cat <<'E' <<F\n'\nE\n@\nF\ncat @",
      `cat <<'E' <<F\n'\nE\n@\nF\ncat "@"`,
    ],
    ["after a quoted here-document", "cat <<\\E\n\"'$(\nE\ncat @", `cat <<\\E\n"'$(\nE\ncat "@"`],
    ["in a here-document in a substitution", 'cat "$(cat <<E\n@\nE\n)@"', 'cat "$(cat <<E\n@\nE\n)@"'],
    ["in a case", "case @ in @|(@) cat @;; esac", 'case "@" in "@"|("@") cat "@";; esac'],
    [
      "after a case in a substitution",
      `cat "$(case a in a) :;; (b|c) :;; esac)@"`,
      `cat "$(case a in a) :;; (b|c) :;; esac)@"`,
    ],
    ["after the word case", `cat "$(echo case a in a)@"`, `cat "$(echo case a in a)@"`],
    [
      "in a subshell, a group, a list and a loop",
      "(cat @) && { cat @; } || for i in @; do cat @; done",
      '(cat "@") && { cat "@"; } || for i in "@"; do cat "@"; done',
    ],
    ["in braces", "cat {@,@}", 'cat {"@","@"}'],
    ["in brackets of a quoted pattern", `ls "a[@]" '[@]' [a]@ [ @ ]`, `ls "a[@]" '['"@"']' [a]"@" [ "@" ]`],
    ["in a here-string", "cat <<<@", 'cat <<<"@"'],
  ])("%s", (_, command, referring) => {
    expect(render(command)).toBe(referring);
  });
});

describe("an expression is refused when it is", () => {
  test.each([
    ["in a here-document with a quoted delimiter", "cat <<'E'\n@\nE"],
    ["in a here-document with a quoted delimiter", 'cat <<"E"\n@\nE'],
    ["in a here-document with a quoted delimiter", "cat <<\\E\n@\nE"],
    ["in a here-document with a quoted delimiter", "cat <<-'E'\n\t@\n\tE"],
    ["in a here-document with a quoted delimiter", "cat <<E\"\"\n$(echo '@')\nE"],
    ["in the delimiter of a here-document", "cat <<@\n@\n"],
    ["in the delimiter of a here-document", "cat <<'E@'\nE@\n"],
    ["in a pattern in a here-document", "cat <<E\n${v#@}\nE"],
    ["in a pattern in a here-document", "cat <<E\n${v:-${w%@}}\nE"],
    ["inside backquotes", "cat `echo @`"],
    ["inside backquotes", 'cat "`echo @`"'],
    ["inside $(( ))", "cat $((1 + @))"],
    ["inside $(( ))", 'cat "$(( $(echo "@") ))"'],
    ["inside $'...'", "cat $'a @'"],
    ["right after a backslash", "cat \\@"],
    ["right after a backslash", 'cat "a\\@"'],
    ["right after a backslash", "cat <<E\n\\@\nE"],
    ["right after a $", "cat $@"],
    ["right after a $", 'cat "a$@"'],
    ["right after a $", "cat <<E\n$@\nE"],
    ["right after a $", "cat ${v:-$@}"],
    ["between double quotes inside a quoted ${", 'cat "${v:-"@"}"'],
    ["inside a [ that may begin an array's index", "a[@]=1"],
    ["inside a [ that may begin an array's index", "cat ab[c$i@]"],
    ["inside a [ that may begin an array's index", `a["@"]=1; b['1']=2`],
    ["inside a [ that may begin an array's index", "a[$(echo @)]=1"],
    ["inside a [ that may begin an array's index", "a=([@]=1)"],
    ["after a ${ that is not of POSIX sh", "cat ${@}"],
    ["after a ${ that is not of POSIX sh", 'cat ${v/"a"/b} @'],
    ["after $'...' with a quote in it", "cat $'a\\'b' @"],
    ["after $ and a quote inside a quoted ${", "cat \"${v:-$'a'}\" @"],
    ["after double quotes inside a quoted ${", `cat "\${v:-"it's"}" @`],
    ["after $[", "cat $[1] @"],
    ["after ((", "((1)); cat @"],
    ["after $(( that may begin a subshell", "cat $((echo a) | cat) @"],
    ["after a single quote inside $(( ))", "cat $(( '1' )) @"],
    ["after [[", "[[ -f a ]] && cat @"],
    ["after function", "function f { cat @; }"],
    ["after a ) that closes nothing", "cat ) @"],
    ["after a case without in", "case a b) cat @;; esac"],
    ["after a here-document with such a delimiter", "cat <<$E\n@\n$E\n"],
    ["after a here-document with such a delimiter", "cat <<`E`\n@\n"],
    ["after a here-document with such a delimiter", "cat <<\n@\n"],
    ["after a here-document whose end is unknown", "cat <<E\n@\n"],
    ["after a here-document whose end is unknown", "cat <<E\na\\\nE\nE\ncat @"],
    ["after a here-document whose end is unknown", "cat <<EF\nE\\\nF\nEF\ncat @"],
    ["after a quoted pattern in a here-document", "cat <<E\n${v#'a'}@\nE"],
    ["after a newline in $( ) on the line that announces a here-document", "cat <<E $(\n)\n@\nE"],
    ["after a $( ) that ends before its here-document begins", "cat $(cat <<E)\n@\nE"],
    ["after a line that ends with $\\", "cat $\\\n(echo @)"],
  ])("%s: %j", (place, command) => {
    expect(() => render(command)).toThrow(
      `place cannot carry its parameters: {{ .Parameters.p }} is ${place}`,
    );
  });

  test.each([
    ["inside single quotes", "cat @ 'a"],
    ["inside double quotes", 'cat "@'],
    ["inside $(", "cat $(echo @"],
    ["inside $(", "cat <<E\n$(echo @\nE\n)"],
    ["inside ${", "cat ${v:-@"],
    ["inside $((", "cat @ $((1"],
    ["inside backquotes", "cat @ `echo"],
    ["before its here-document begins", "cat @ <<E"],
  ])("in a command that ends %s", (ends, command) => {
    expect(() => render(command)).toThrow(`place cannot carry its parameters: the command ends ${ends}`);
  });
});

test("a command without expressions is never judged", () => {
  const command = "docker ps --format '{{.ID}}' `x` $((1 <<'E' \"";
  expect(withReferences(command, "place")).toEqual({ command, keys: [] });
});

test("what follows the last expression may be unclear", () => {
  expect(render("cat @; [[ -f a ]] && ((1))")).toBe('cat "@"; [[ -f a ]] && ((1))');
});

test("the keys are those of the command, each once, in the order of their first use", () => {
  const command = "{{ .Parameters.b }} {{ .Parameters.B }} # {{.Parameters.a}} {{ .Parameters.b }}";
  expect(withReferences(command, "place")).toEqual({
    command:
      '"${CHARTROOM_PARAMETER_b}" "${CHARTROOM_PARAMETER_B}" # ${CHARTROOM_PARAMETER_a} ${CHARTROOM_PARAMETER_b}',
    keys: ["b", "B", "a"],
  });
});

test("a command has at most 20,000 characters with its references in it", () => {
  const reference = '"${CHARTROOM_PARAMETER_p}"';
  const filled = (characters: number) => `@${"é".repeat(characters - reference.length)}`;
  for (const characters of [19_999, 20_000]) {
    expect([
      ...withReferences(filled(characters).replace("@", "{{.Parameters.p}}"), "place").command,
    ]).toHaveLength(characters);
  }
  expect(() => render(filled(20_001))).toThrow("place has more than 20000 characters once");
});

test("a long command without sense is read in time that grows with its length", () => {
  const tookMs = cpuMs(() => {
    for (const piece of [
      '"$(',
      "${v:-",
      "$((",
      "(",
      "`",
      "'",
      "<<E\n",
      "<<E\n\\\n",
      "case a in ",
      "a[",
      "\\",
      "\\\n",
      "$(\n",
      "{",
      "<<'",
    ]) {
      try {
        withReferences(`${piece.repeat(19_000 / piece.length)}{{ .Parameters.p }}`, "place");
      } catch {}
    }
  });
  // A tenth of it on a machine that does nothing else; what grows faster takes far longer.
  expect(tookMs).toBeLessThan(10_000);
});
