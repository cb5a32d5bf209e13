import { keepInMemory } from "./memory.ts";
import { createTemplate } from "./sqlite-template.ts";

/** Prepares a run whose temporary files are in memory. */
export default async function setUp(): Promise<void> {
  keepInMemory();
  await createTemplate();
}
