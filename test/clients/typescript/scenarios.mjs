/**
 * Runs one scenario with the packed client: scenarios.mjs ADDRESS SCENARIO. The token is in the environment variable
 * TOKEN. Prints one JSON object.
 */
import { createClient } from "@chartroom/client";
import { scenarios } from "./shared.mjs";

const [, , server, name] = process.argv;
const chartroom = createClient({ server, token: process.env.TOKEN });
const print = (text) => process.stdout.write(`${text}\n`);
const result = await scenarios(chartroom, () => print("watching"))[name]();
print(JSON.stringify({ node: process.versions.node, ...result }));
