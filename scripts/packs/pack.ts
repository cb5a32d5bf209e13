/**
 * Makes the packages for npm, @chartroom/api and @chartroom/client, and an archive of the .proto files, all in the
 * version of package.json.
 *
 *   npm run pack                 leaves them in ./release
 *   npm run pack -- --to FOLDER
 *   npm run pack -- --all        those of other languages too, for which this machine has the tools
 *   npm run pack -- --all --without java,go
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packNpm, packOthers, readWithout } from "./clients.ts";

const { values: flags } = parseArgs({
  options: {
    to: { type: "string", default: "release" },
    all: { type: "boolean", default: false },
    without: { type: "string", default: "" },
  },
});
const to = resolve(join(import.meta.dirname, "../.."), flags.to);
const without = readWithout(flags.without);
const say = (text: string) => process.stdout.write(`${text}\n`);
for (const pack of packNpm(to)) say(pack);
if (flags.all) for (const { pack, reason } of packOthers(to, without)) say(`without ${pack}: ${reason}`);
