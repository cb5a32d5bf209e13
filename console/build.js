// Builds the console: `npm run build` always, `npm start` (--when-stale) when its sources have changed. Plain
// JavaScript, so that an older Node reaches the server's message instead of a syntax error.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

// Not import.meta.dirname, which an older Node lacks.
const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(FOLDER, "..");
const DIST = join(FOLDER, "dist");
/** The file with the hash of the sources of a build. */
const HASH = "sources.sha256";
/** Compression gains nothing for smaller files. */
const PACKED_BYTES = 1024;

const whenStale = process.argv.includes("--when-stale");

/** Returns the hash of everything that determines the build. */
function sourcesHash() {
  const files = ["src", "../gen"].flatMap((folder) =>
    readdirSync(join(FOLDER, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const more = [
    ...["index.html", "vite.config.js", "build.js", "../package-lock.json"],
    // The console imports these from the server's sources.
    "../src/commands/agent-presets.ts",
  ].map((name) => join(FOLDER, name));
  const hash = createHash("sha256");
  for (const file of [...files, ...more].sort()) {
    hash
      .update(`${relative(ROOT, file)}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
  return hash.digest("hex");
}

/** Compresses the files that browsers load, once for all responses. Returns the bytes of the first page. */
function pack(folder) {
  const assets = join(folder, "assets");
  const packed = new Map();
  for (const name of readdirSync(assets)) {
    const bytes = readFileSync(join(assets, name));
    const short = gzipSync(bytes, { level: 9 });
    packed.set(name, short.length);
    if (bytes.length >= PACKED_BYTES) writeFileSync(join(assets, `${name}.gz`), short);
  }
  const page = readFileSync(join(folder, "index.html"), "utf8");
  const first = [...page.matchAll(/\/assets\/([^"]+)"/g)].map(([, name]) => packed.get(name) ?? 0);
  return first.reduce((sum, bytes) => sum + bytes, 0);
}

/** Errors of renaming to a folder that another start has filled in the meantime. */
const FILLED = ["ENOTEMPTY", "EEXIST"];

/** Replaces the previous build by a new one, even when another start does so at the same time. */
function replaceDist(folder) {
  for (let isPlaced = false; !isPlaced; ) {
    try {
      rmSync(DIST, { recursive: true, force: true });
      renameSync(folder, DIST);
      isPlaced = true;
    } catch (error) {
      if (!FILLED.includes(error.code)) throw error;
    }
  }
}

async function build(hash) {
  const { build } = await import("vite");
  // Otherwise the bundler clears the line of a terminal hundreds of times, although it reports nothing.
  process.env.CI ??= "true";
  process.stdout.write("Building the console, which takes a few seconds ...\n");
  const began = performance.now();
  const folder = `${DIST}.${process.pid}`;
  try {
    await build({ configFile: join(FOLDER, "vite.config.js"), build: { outDir: folder } });
    const firstBytes = pack(folder);
    writeFileSync(join(folder, HASH), `${hash}\n`);
    replaceDist(folder);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const kilobytes = Math.ceil(firstBytes / 1000);
    process.stdout.write(`Built the console in ${seconds} s; a browser first loads ${kilobytes} kB of it.\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Builds the console unless the current sources are already built. */
async function buildWhenStale() {
  const hash = sourcesHash();
  const built = existsSync(join(DIST, HASH)) ? readFileSync(join(DIST, HASH), "utf8").trim() : "";
  if (built !== hash) await build(hash);
}

const isTestServer = process.env.JEST_WORKER_ID !== undefined;
const hasTools =
  existsSync(join(ROOT, "node_modules/vite")) && Number(process.versions.node.split(".")[0]) >= 24;
if (!whenStale) {
  await build(sourcesHash());
} else if (hasTools && !isTestServer) {
  // A failed build of the console must not stop the server.
  await buildWhenStale().catch((error) => {
    process.stdout.write(
      `The console could not be built: ${error.message}\nThe server starts without the newest one.\n`,
    );
  });
}
