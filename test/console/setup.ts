import { existsSync } from "node:fs";
import { createTemplate } from "../harness/sqlite-template.ts";
import { CHROMIUM } from "./browser.ts";

/** Prepares a run of the console's tests; without a browser there is none. */
export default async function setup(): Promise<void> {
  if (!existsSync(CHROMIUM)) {
    throw new Error(
      `there is no Chromium at ${CHROMIUM}: install it (on Debian and Ubuntu \`sudo apt-get install chromium\`), or name another one in TEST_CHROMIUM`,
    );
  }
  await createTemplate();
}
