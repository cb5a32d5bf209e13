import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../test/harness/seed.ts";
import { Secrets } from "./secrets.ts";

const TOKEN = "cr_env_0123456789";

function secretsOf(...values: string[]): Secrets {
  const secrets = new Secrets();
  for (const value of values) secrets.add(value);
  return secrets;
}

describe("what is printed at once", () => {
  test.each([
    ["", ""],
    ["nothing here", "nothing here"],
    [`a ${TOKEN} b ${TOKEN}`, "a *** b ***"],
    [`${TOKEN}${TOKEN}`, "******"],
    [TOKEN.slice(0, -1), TOKEN.slice(0, -1)],
    [`${TOKEN.slice(0, -1)}${TOKEN}`, `${TOKEN.slice(0, -1)}***`],
    ["hunter2", "***"],
    ["cr_env_hunter2", "cr_env_***"],
  ])("holds no secret: %s", (printed, masked) => {
    expect(secretsOf(TOKEN, "hunter2").mask(Buffer.from(printed)).toString()).toBe(masked);
  });

  test("is unchanged when there are no secrets, or only an empty one", () => {
    expect(secretsOf("").mask(Buffer.from([0, 255, 128]))).toEqual(Buffer.from([0, 255, 128]));
  });
});

test("nothing is held back that cannot become a secret", () => {
  const stream = secretsOf(TOKEN).stream();
  expect(stream.write(Buffer.from("one line\n")).toString()).toBe("one line\n");
  expect(stream.write(Buffer.from("two cr_e")).toString()).toBe("two ");
  expect(stream.write(Buffer.from("h")).toString()).toBe("cr_eh");
  expect(stream.write(Buffer.from("cr_env_")).toString()).toBe("");
  expect(stream.end().toString()).toBe("cr_env_");
  expect(stream.end().toString()).toBe("");
});

test("a secret that comes to be known is masked from then on", () => {
  const secrets = secretsOf(TOKEN);
  const stream = secrets.stream();
  expect(stream.write(Buffer.from("hunter2 ")).toString()).toBe("hunter2 ");
  secrets.add("hunter2");
  expect(stream.write(Buffer.from("hunter2 ")).toString()).toBe("*** ");
});

test("however a text is cut, the masked text is the same", () => {
  const parts = fc.array(fc.constantFrom("ab", "aab", "a", "b", "c", "abc", "ü"), { maxLength: 30 });
  fc.assert(
    fc.property(parts, fc.array(fc.nat(8), { minLength: 1 }), (texts, cuts) => {
      const bytes = Buffer.from(texts.join(""));
      const secrets = secretsOf("aaba", "abcab", "bücb");
      const stream = secrets.stream();
      const masked: Buffer[] = [];
      for (let from = 0, turn = 0; from < bytes.length; turn++) {
        const lengthBytes = Math.max(1, cuts[turn % cuts.length] ?? 1);
        masked.push(stream.write(bytes.subarray(from, from + lengthBytes)));
        from += lengthBytes;
      }
      masked.push(stream.end());
      expect(Buffer.concat(masked).toString("latin1")).toBe(secrets.mask(bytes).toString("latin1"));
      expect(Buffer.concat(masked).includes("aaba")).toBe(false);
    }),
    { ...replay, numRuns: 2_000 },
  );
});

const KEY =
  "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8AgEAAkEA\n  q7Z+/ü ends\n\nx\n-----END KEY-----\n";
const encoded = (text: string, format: BufferEncoding = "base64") => Buffer.from(text).toString(format);
const masked = (value: string, text: string) => secretsOf(value).mask(Buffer.from(text)).toString();

describe("a value of several lines is masked", () => {
  test("as a whole, also with other ends of lines", () => {
    expect(masked(KEY, `a ${KEY}b`)).toBe("a ***b");
    expect(masked(KEY, `a ${KEY.replaceAll("\n", "\r\n")}b`)).toBe("a ***\r\nb");
    expect(masked(KEY, `a ${KEY.trim()} b`)).toBe("a *** b");
  });

  test("line by line, but for those of fewer than 4 characters", () => {
    const lines = KEY.split("\n").map((line) => `+${line}`);
    expect(masked(KEY, lines.join("\n"))).toBe("+***\n+***\n+  ***\n+\n+x\n+***\n+");
  });

  test("as in JSON, in either form", () => {
    expect(masked(KEY, JSON.stringify({ key: KEY }))).toBe('{"key":"***"}');
    expect(masked('quo"ted', JSON.stringify({ key: 'quo"ted' }))).toBe('{"key":"***"}');
  });
});

test("a value is masked as URLs have it", () => {
  expect(masked("pass/word ü", `https://a:${encodeURIComponent("pass/word ü")}@b`)).toBe("https://a:***@b");
});

test.each([1, 2, 3])("a value of %i characters is not masked, nor in base64", (length) => {
  const value = "abc".slice(0, length);
  expect(masked(value, `abc ${encoded(value)}`)).toBe(`abc ${encoded(value)}`);
});

describe("a value is masked in base64", () => {
  test.each(["abcd", "hunter2", "Rumpelstiltskin", KEY])(
    "alone, and however it lies in something longer: %j",
    (value) => {
      expect(masked(value, `a ${encoded(value)} b`)).toBe("a *** b");
      expect(masked(value, `a ${encoded(`${value.trim()}\n`)} b`)).toBe("a *** b");
      for (const format of ["base64", "base64url"] as const) {
        for (const before of ["", "x", "xy", "xyz", "user:"]) {
          for (const after of ["", "1", "12", "123"]) {
            const text = masked(value, encoded(`${before}${value}${after}`, format));
            // Of what is left, nothing but the ends of the value can be read.
            const left = text.split("***").map((part) => Buffer.from(part, "base64").toString("latin1"));
            expect(left.length).toBeGreaterThan(1);
            for (const part of left) expect(part).not.toContain(value.slice(1, -1));
            expect(text.replaceAll("***", "").length).toBeLessThanOrEqual(
              Math.ceil(((before.length + after.length) * 4) / 3) + 6,
            );
          }
        }
      }
    },
  );

  test("where it is wrapped, at any column", () => {
    for (let column = 1; column <= 76; column++) {
      const wrapped = `${encoded(KEY).slice(0, column)}\n${encoded(KEY).slice(column).replace(/.{76}/g, "$&\n")}`;
      expect(masked(KEY, wrapped).replaceAll("***", "").trim().length).toBeLessThanOrEqual(3);
    }
  });
});

test("secrets that overlap are masked together, and the longer of two", () => {
  const secrets = secretsOf("abcdef", "efghij", "abcd");
  expect(secrets.mask(Buffer.from("1 abcdefghij 2 abcdef 3 abcde")).toString()).toBe("1 *** 2 *** 3 ***e");
});

test("secrets that overlap without an end are masked at once, and not held back until there is one", () => {
  const stream = secretsOf("aaaaaa").stream();
  const endless = Buffer.alloc(1_000, "a");
  const masked = [endless, endless, Buffer.from("aa b aaa")].map((piece) => stream.write(piece).toString());
  expect(masked).toEqual(["***", "", " b "]);
  expect(stream.end().toString()).toBe("aaa");
});

test("no text of any secret is left, however it is cut", () => {
  const character = fc.constantFrom("a", "b", "c", "ü", "\n", " ", "+", "/", "0");
  const value = fc.string({ unit: character, minLength: 4, maxLength: 40 });
  const forms = [
    (text: string) => text,
    (text: string) => text.replaceAll("\n", "\r\n"),
    (text: string) => encoded(text),
    (text: string) => encoded(`a${text}b`),
    (text: string) => encoded(`ab${text}`),
    (text: string) => text.slice(0, -1),
  ];
  const form = fc.constantFrom(...forms);
  const piece = fc.oneof(fc.string({ unit: character, maxLength: 6 }), fc.tuple(form, fc.nat(2)));
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 3 }),
      fc.array(piece, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (values, pieces, cuts) => {
        const texts = pieces.map((each) =>
          typeof each === "string" ? each : each[0](values[each[1] % values.length] ?? ""),
        );
        const bytes = Buffer.from(texts.join(""));
        const secrets = secretsOf(...values);
        const stream = secrets.stream();
        const masked: Buffer[] = [];
        for (let from = 0, turn = 0; from < bytes.length; turn++) {
          const lengthBytes = cuts[turn % cuts.length] ?? 1;
          masked.push(stream.write(bytes.subarray(from, from + lengthBytes)));
          from += lengthBytes;
        }
        masked.push(stream.end());
        const text = Buffer.concat(masked).toString("latin1");
        expect(text).toBe(secrets.mask(bytes).toString("latin1"));
        for (const each of values) {
          const whole = Buffer.from(each).toString("latin1");
          expect(text).not.toContain(whole);
          expect(text).not.toContain(encoded(each));
          for (const line of each.split("\n").map((part) => Buffer.from(part.trim()).toString("latin1"))) {
            if (line.length >= 4) expect(text).not.toContain(line);
          }
        }
      },
    ),
    { ...replay, numRuns: 3_000 },
  );
});

describe("a part of a text", () => {
  const mask = (secrets: Secrets, text: string, start: number, end: number) => {
    const bytes = Buffer.from(text);
    const [first, last] = [Math.max(0, start - secrets.longestBytes), end + secrets.longestBytes];
    return secrets
      .maskPart(bytes.subarray(first, last), start - first, Math.min(end, bytes.length) - first)
      .toString();
  };

  test.each([
    [0, 24, "a *** b"],
    [0, 10, "a ***"],
    [5, 24, "*** b"],
    [5, 10, "***"],
    [0, 2, "a "],
    [19, 24, " b"],
    [18, 24, "*** b"],
  ])("from %i to %i holds no piece of a secret", (start, end, masked) => {
    expect(mask(secretsOf(TOKEN), `a ${TOKEN} b`, start, end)).toBe(masked);
  });

  test("is masked as the whole text is, wherever it is cut", () => {
    const piece = fc.constantFrom("key-one", "key-", "one", "wooden key", "x", "\n", "key-one!key");
    const property = fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.nat(),
      fc.nat(),
      (pieces, from, to) => {
        const secrets = secretsOf("key-one", "wooden key", "one!key");
        const text = pieces.join("");
        const [start, end] = [from % (text.length + 1), to % (text.length + 1)].sort((a, b) => a - b) as [
          number,
          number,
        ];
        const masked = mask(secrets, text, start, end);
        // What is left of the part is in the masked text, too, and secrets leave nothing else.
        const whole = secrets.mask(Buffer.from(text)).toString();
        for (const rest of masked.split("***")) expect(whole).toContain(rest);
        if (start === 0 && end === text.length) expect(masked).toBe(whole);
      },
    );
    fc.assert(property, replay);
  });

  test("is masked by what other secrets mask", () => {
    const all = new Secrets();
    all.addAll(secretsOf(TOKEN));
    all.addAll(secretsOf("hunter2"));
    expect(all.maskText(`hunter2 ${TOKEN}`)).toBe("*** ***");
  });
});
