#!/usr/bin/env node
// Plain JavaScript, so that an older Node gets a sentence instead of a syntax error.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `chartroom needs Node 24 or newer and was started with ${process.versions.node}.\n` +
      "Inside this repository use `npm start` or `npx chartroom`: both use the Node that `npm ci` installed.\n",
  );
  process.exit(1);
}
await import("../src/main.ts");
