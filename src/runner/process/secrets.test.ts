import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
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
  ])("holds no secret: %s", (printed, told) => {
    expect(secretsOf(TOKEN, "hunter2").mask(Buffer.from(printed)).toString()).toBe(told);
  });

  test("is told as it is when there are no secrets, an empty one neither", () => {
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

test("however a text is cut, the same is told of it", () => {
  const parts = fc.array(fc.constantFrom("ab", "aab", "a", "b", "c", "abc", "ü"), { maxLength: 30 });
  fc.assert(
    fc.property(parts, fc.array(fc.nat(8), { minLength: 1 }), (texts, cuts) => {
      const bytes = Buffer.from(texts.join(""));
      const secrets = secretsOf("aab", "abcab", "bü");
      const stream = secrets.stream();
      const told: Buffer[] = [];
      for (let from = 0, turn = 0; from < bytes.length; turn++) {
        const lengthBytes = Math.max(1, cuts[turn % cuts.length] ?? 1);
        told.push(stream.write(bytes.subarray(from, from + lengthBytes)));
        from += lengthBytes;
      }
      told.push(stream.end());
      expect(Buffer.concat(told).toString("latin1")).toBe(secrets.mask(bytes).toString("latin1"));
      expect(Buffer.concat(told).includes("aab")).toBe(false);
    }),
    { ...replay, numRuns: 2_000 },
  );
});
