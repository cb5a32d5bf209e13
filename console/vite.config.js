import { join } from "node:path";
import { defineConfig } from "vite";

/** The languages that the console highlights, instead of all that Shiki knows. */
const LANGUAGES = join(import.meta.dirname, "src/parts/diff/languages.ts");

/** Replaces C++ embedded in other languages. */
const CPP = join(import.meta.dirname, "src/parts/diff/cpp-as-c.ts");

/**
 * Modules that @pierre/diffs could load but the console never needs: other engines, all themes, and in the worker,
 * languages.
 */
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

/** Excludes modules from the build: importing them gives nothing. */
const leaveOut = (modules) => ({
  name: "leave-out",
  enforce: "pre",
  resolveId: (id) => (modules.some((module) => module.test(id)) ? NOTHING : undefined),
  load: (id) =>
    id === NOTHING
      ? `${NAMES.map((name) => `export const ${name} = undefined;`).join("\n")}\nexport default undefined;`
      : undefined,
});

/** The build of the console; build.js names the folder. The bundler itself compiles JSX, without a plugin. */
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
    // The size of the first page is measured compressed, by test/console.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // The first page's scripts are one file: each more costs a header and compresses worse.
      output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] } },
      // Packages say "use client" for server rendering, which the console does not use.
      onwarn(warning, warn) {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
  logLevel: "warn",
});
