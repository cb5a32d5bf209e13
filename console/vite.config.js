import { defineConfig } from "vite";

/** How the console is built; build.js names the folder. JSX is the bundler's own, so that no plugin is needed. */
export default defineConfig({
  root: import.meta.dirname,
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
