import { describe, expect, test } from "@jest/globals";
import { GitComplaints } from "./git-complaints.ts";

/** Adds texts one by one and returns the complaints and the progress. */
function collect(...texts: string[]): { complaints: string; progress: string[] } {
  const progress: string[] = [];
  const collected = new GitComplaints((line) => progress.push(line));
  for (const text of texts) collected.add(Buffer.from(text));
  return { complaints: collected.text, progress };
}

describe("the standard error of git", () => {
  test("is separated from progress, also where a line comes in pieces", () => {
    const { complaints, progress } = collect(
      "remote: Counting objects:  50% (1/2)\rremote: Coun",
      "ting objects: 100% (2/2)\r",
      "remote: done.\nfat",
      "al: early EOF",
    );
    expect(progress).toEqual([
      "remote: Counting objects:  50% (1/2)",
      "remote: Counting objects: 100% (2/2)",
    ]);
    expect(complaints).toBe("remote: done.\nfatal: early EOF");
  });

  test("has the lines of programs that end them as a terminal does", () => {
    const { complaints, progress } = collect(
      "ssh: connect to host: Connection refused\r",
      "\nfatal: gone\r\n",
    );
    expect([complaints, progress]).toEqual([
      "ssh: connect to host: Connection refused\r\nfatal: gone\r\n",
      [],
    ]);
  });

  test("is kept from its end, in whole lines", () => {
    const line = `${"x".repeat(99)}\n`;
    const { complaints } = collect("first\n", line.repeat(1_000), "fatal: last\n");
    expect(complaints.length).toBeLessThan(66_000);
    expect(complaints).toMatch(/^(x{99}\n)+fatal: last\n$/);
  });

  test("has no part of a line that is too long", () => {
    const { complaints } = collect("first\n", "secret".repeat(10_000), "secret".repeat(10_000), "\nlast\n");
    expect(complaints).toBe("first\nlast\n");
  });
});
