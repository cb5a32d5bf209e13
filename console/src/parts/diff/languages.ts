/**
 * The languages whose words are coloured in diffs, each loaded with the first file in it: vite.config.js gives them to
 * @pierre/diffs in place of all that Shiki has, which are ten times as much to ship.
 */
export const bundledLanguages = {
  c: () => import("shiki/langs/c.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  proto: () => import("shiki/langs/proto.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  shellscript: () => import("shiki/langs/shellscript.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  terraform: () => import("shiki/langs/terraform.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
};

/** What @pierre/diffs calls the language of some files, and the one here that has its words. */
const ALSO: Readonly<Record<string, string>> = {
  bash: "shellscript",
  cpp: "c",
  dockerfile: "docker",
  dotenv: "ini",
  hcl: "terraform",
  json5: "json",
  jsonc: "json",
  jsonl: "json",
  jsx: "tsx",
  makefile: "make",
  mdx: "markdown",
  "objective-cpp": "c",
  properties: "ini",
  protobuf: "proto",
  scss: "css",
  tf: "terraform",
  yml: "yaml",
  zsh: "shellscript",
};

/** Returns the language here that has the words of one that @pierre/diffs has found; "text" where none has. */
export function languageOf(found: string): string {
  const name = Object.hasOwn(ALSO, found) ? (ALSO[found] ?? found) : found;
  return Object.hasOwn(bundledLanguages, name) ? name : "text";
}
