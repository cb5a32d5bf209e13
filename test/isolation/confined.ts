import { expect } from "@jest/globals";
import type { Place } from "./sandboxes.ts";

/**
 * Expects that work has no capabilities, gets no new privileges, and has a filter of system calls.
 * @param free where nothing is isolated
 * @param kinds those of the namespaces that are not the same there, with blanks between them
 */
export async function expectConfined(place: Place, free: Place, kinds: string): Promise<void> {
  const namespaces = `for each in ${kinds}; do readlink /proc/self/ns/$each; done`;
  const { text } = await place.sh(`${namespaces}; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status`);
  const outside = (await free.sh(namespaces)).text.split("\n");
  const lines = text.split("\n");
  for (const [index, line] of outside.entries()) if (line !== "") expect(lines[index]).not.toBe(line);
  for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
    expect(text).toMatch(new RegExp(`^${name}:\\s*0{16}$`, "m"));
  expect(text).toMatch(/^NoNewPrivs:\s*1$/m);
  expect(text).toMatch(/^Seccomp:\s*2$/m);
}
