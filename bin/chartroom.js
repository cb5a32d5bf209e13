#!/usr/bin/env node
// Plain JavaScript, so that an older Node gets a sentence instead of a syntax error.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `chartroom needs Node 24 or newer and was started with ${process.versions.node}.\n` +
      "Inside this repository use `npm start` or `npx chartroom`: both use the Node that `npm ci` installs,\n" +
      "unless it omits optional packages.\n",
  );
  process.exit(1);
}
// What a start compiles is kept next to the packages, in a folder that only the owner of this one can write:
// the next starts take half as long.
const { enableCompileCache } = await import("node:module");
enableCompileCache(`${import.meta.dirname}/../node_modules/.cache/compile`);
await import("./resolution-cache.js");
await import("../src/main.ts");
