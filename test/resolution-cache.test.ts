import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { ROOT, runProgram } from "./harness/program.ts";

/** Prints each module that the server loads and its format, the format of an import first. */
const LIST_MODULES = `
import { registerHooks } from "node:module";
const lines = [];
registerHooks({
  load: (url, context, next) => {
    lines.push(context.format + " " + url);
    return next(url, context);
  },
});
await import(${JSON.stringify(join(ROOT, "src/commands/serve.ts"))});
process.stdout.write(lines.join("\\n"), () => process.exit());
`;

async function modulesOf(...flags: readonly string[]): Promise<readonly string[]> {
  const args = [...flags, "--input-type=module", "--eval", LIST_MODULES];
  const { code, stdout, stderr } = await runProgram(process.execPath, args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.split("\n");
}

test("the program loads the modules, in the formats, that Node itself would resolve its imports to", async () => {
  const plain = await modulesOf();
  expect(plain.length).toBeGreaterThan(1_000);
  expect(await modulesOf("--import", join(ROOT, "bin/resolution-cache.js"))).toEqual(plain);
});
