// biome-ignore-all lint/suspicious/noTemplateCurlyInString: programs for sh have ${ } that no template fills.
import fc from "fast-check";

type Text = fc.Arbitrary<string>;

/** Marks a place of a generated program where an expression may be put. */
export const HOLE = "\u0001";

/**
 * Programs of sh made of every way of quoting, nested in each other, with holes in many places.
 * They print their words with a function `show`, expect `$v` to be empty or unset and `$w` to be
 * `z` and a hole, and run no program but `cat`.
 */
export const shellProgram: Text = fc.letrec<Record<string, string>>((tie) => {
  const one = (...choices: (string | Text)[]): Text =>
    fc.oneof({ maxDepth: 4, withCrossShrink: true }, ...choices.map(text));
  const some = (name: string): Text =>
    fc.array(tie(name) as Text, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(""));
  const nested = (before: string, name: string, after: string): Text => joined(before, some(name), after);
  const bare = some("bare");
  const words = joined(bare, one("", bare, joined(" ", bare), joined("  ", bare, " ", bare)));
  const program = tie("program") as Text;

  const substitution = joined("$( ", program, ")");
  const single = nested("'", "single", "'");
  const double = nested('"', "double", '"');
  const fallback = nested("${v:-", "braces", "}");
  const quotedFallback = nested("${v:-", "quotedBraces", "}");
  // Without patterns: shells differ in how they read those in a here-document.
  const hereFallback = nested("${v:-", "hereBraces", "}");
  const pattern = nested("${w#", "pattern", "}");
  const lastPattern = nested("${w%%", "pattern", "}");
  const plain = ["a", "-", "=", "%", "é", "\\\\", "\\'", '\\"', "\\$", "\\\n", "$v", "$#", "{{.ID}}", "#"];

  return {
    bare: one(HOLE, ...plain, "''", '""', single, double, fallback, joined('"', substitution, '"')),
    single: one(HOLE, "a", '"', "\\", "$", "`", "$(", "${", " ", "\n", "#", "<<E", "}", ")"),
    double: one(
      ...[HOLE, "a", "'", "\\\\", '\\"', "\\$", "\\`", "\\a", "\\\n", "$v", "$ ", " ", "\n", "#", ")", "}"],
      ...["<<E", "{{.ID}}", "$((1+(2)))", '`echo "x"`', quotedFallback, pattern, lastPattern, substitution],
    ),
    braces: one(HOLE, "a", "#", "{", "(", ";", "$v", "\\}", single, double, fallback),
    quotedBraces: one(
      ...[HOLE, "a", "'", "#", "{", "(", ";", " ", "$v", "\\}", '\\"', quotedFallback, substitution, pattern],
    ),
    pattern: one(HOLE, "z", single, double, fallback),
    here: one(
      ...[HOLE, "a", "'", '"', "\\\\", "\\$", "$v", "\n", "\t", "#", ")", "}", "\\a", "{{.ID}}"],
      ...['`echo "x"`', substitution, hereFallback],
    ),
    hereBraces: one(HOLE, "a", "'", "#", "{", "(", " ", "$v", "\\}", '\\"', hereFallback, substitution),
    quotedHere: one("a", "'", '"', "$(", "\\", "`", "\n", "${"),
    command: one(
      ...[joined("show ", words), joined("show ", words, " | cat"), joined("x=", bare, '; show "$x"')],
      joined("case ", bare, " in ", bare, ") show 1;; (", bare, "|a) show 2;;\n*) show 3;; esac"),
      ...[joined("( ", program, ")"), joined("{ ", program, "\n}")],
      joined("if [ ", bare, " = ", bare, " ]; then show 1; else show ", bare, "; fi"),
      joined("for i in ", words, '; do show "$i"; done'),
      ...["for i do case $i in a) show;; esac; done", joined("# ", some("single"), "'\n:")],
      ...[nested("cat <<E\n", "here", "\nE\n"), nested("cat <<-E\n\t", "here", "\n\tE\n")],
      joined("show ", words, " <<'E'\n", some("quotedHere"), "\nE\n"),
      joined("cat <<E; cat <<\\F\n", some("here"), "\nE\n", some("quotedHere"), "\nF\n"),
    ),
    program: joined(tie("command") as Text, one("", "", joined("\n", program))),
  };
}).program as Text;

/** Programs of {@link shellProgram} with a few characters removed or inserted; most are broken. */
export const brokenShellProgram: Text = fc
  .tuple(
    shellProgram,
    fc.array(
      fc.tuple(
        fc.nat(10_000),
        fc.boolean(),
        fc.constantFrom(
          ...["'", '"', "\\", "$", "(", ")", "{", "}", "`", "#", "\n", " ", ";", "|", HOLE, "<<E\n", "E"],
          ...["$(", "$((", "${v:-", "${w#", "$'", "esac", "case a in "],
        ),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([program, edits]) =>
    edits.reduce((text, [place, drops, put]) => {
      const at = place % (text.length + 1);
      return text.slice(0, at) + (drops ? "" : put) + text.slice(drops ? at + 1 : at);
    }, program),
  );

function joined(...parts: (string | Text)[]): Text {
  return fc.tuple(...parts.map(text)).map((texts) => texts.join(""));
}

function text(part: string | Text): Text {
  return typeof part === "string" ? fc.constant(part) : part;
}
