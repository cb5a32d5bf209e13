import { createClient } from "@chartroom/client";
import { scenarios } from "../shared.mjs";

/** Runs a scenario; the test calls it. */
globalThis.runScenario = (server, token, name) =>
  scenarios(createClient({ server, token }), globalThis.onWatching)[name]();
