import { join } from "node:path";
import { defineConfig } from "vite";

/** The languages that the console colours, in place of all that Shiki knows. */
const LANGUAGES = join(import.meta.dirname, "src/parts/diff/languages.ts");

/** What a language gets that has C++ within it. */
const CPP = join(import.meta.dirname, "src/parts/diff/cpp-as-c.ts");

/** What @pierre/diffs can load and the console never has it load: other engines, all themes; in the worker, languages. */
const UNUSED = /^(shiki\/wasm|shiki\/engine\/oniguruma|@pierre\/highlights(\/.*)?|@pierre\/theming\/themes)$/;
const NOTHING = "\0nothing";
const NAMES = [
  "LiveTokenizer",
  "bundledLanguages",
  "codeToTokens",
  "createOnigurumaEngine",
  "isSupportedLanguage",
  "themes",
];

/** Leaves modules out of what is built: what imports them gets nothing. */
const leaveOut = (modules) => ({
  name: "leave-out",
  enforce: "pre",
  resolveId: (id) => (modules.some((module) => module.test(id)) ? NOTHING : undefined),
  load: (id) =>
    id === NOTHING
      ? `${NAMES.map((name) => `export const ${name} = undefined;`).join("\n")}\nexport default undefined;`
      : undefined,
});

/** How the console is built; build.js names the folder. JSX is the bundler's own, so that it needs no plugin. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [leaveOut([UNUSED])],
  resolve: {
    alias: [
      { find: /^shiki\/langs$/, replacement: LANGUAGES },
      { find: /^\.\/cpp\.mjs$/, replacement: CPP },
    ],
  },
  worker: { format: "es", plugins: () => [leaveOut([UNUSED, /languages\.ts$/])] },
  build: {
    target: "es2024",
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    reportCompressedSize: false,
    // What the first page may load is measured where it counts: packed, by test/console.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // What the first page needs is one file: each more costs its header, and packs worse.
      output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] } },
      // Packages say "use client" to servers that render; there is none here.
      onwarn(warning, warn) {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
  logLevel: "warn",
});
