/**
 * The languages with syntax highlighting in diffs. Each is loaded with the first file in it. vite.config.js
 * substitutes them for the languages of Shiki, which would be ten times as large.
 */
export const bundledLanguages = {
  c: () => import("shiki/langs/c.mjs"),
  clojure: () => import("shiki/langs/clojure.mjs"),
  cmake: () => import("shiki/langs/cmake.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  dart: () => import("shiki/langs/dart.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  elixir: () => import("shiki/langs/elixir.mjs"),
  erb: () => import("shiki/langs/erb.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  graphql: () => import("shiki/langs/graphql.mjs"),
  groovy: () => import("shiki/langs/groovy.mjs"),
  haskell: () => import("shiki/langs/haskell.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  less: () => import("shiki/langs/less.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  nginx: () => import("shiki/langs/nginx.mjs"),
  nix: () => import("shiki/langs/nix.mjs"),
  perl: () => import("shiki/langs/perl.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  powershell: () => import("shiki/langs/powershell.mjs"),
  proto: () => import("shiki/langs/proto.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  r: () => import("shiki/langs/r.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  scala: () => import("shiki/langs/scala.mjs"),
  scss: () => import("shiki/langs/scss.mjs"),
  shellscript: () => import("shiki/langs/shellscript.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  svelte: () => import("shiki/langs/svelte.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  terraform: () => import("shiki/langs/terraform.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  vue: () => import("shiki/langs/vue.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
  zig: () => import("shiki/langs/zig.mjs"),
};

/** Language names of @pierre/diffs, and the grammar here that covers each. */
const ALSO: Readonly<Record<string, string>> = {
  bash: "shellscript",
  // Its own grammar takes seconds to prepare.
  cpp: "c",
  dockerfile: "docker",
  dotenv: "ini",
  hcl: "terraform",
  json5: "json",
  jsonc: "json",
  jsonl: "json",
  jsx: "tsx",
  kts: "kotlin",
  makefile: "make",
  mdx: "markdown",
  "objective-cpp": "c",
  // Both use the extension .pl.
  prolog: "perl",
  properties: "ini",
  protobuf: "proto",
  tf: "terraform",
  tfvars: "terraform",
  yml: "yaml",
  zsh: "shellscript",
};

/** Returns the grammar for a language that @pierre/diffs has detected; "text" for none. */
export function languageOf(found: string): string {
  const name = Object.hasOwn(ALSO, found) ? (ALSO[found] ?? found) : found;
  return Object.hasOwn(bundledLanguages, name) ? name : "text";
}

/** Files whose language @pierre/diffs does not detect by name or extension. */
export const MORE_FILES: Readonly<Record<string, string>> = {
  Jenkinsfile: "groovy",
  csproj: "xml",
  gradle: "groovy",
  hxx: "c",
  ipynb: "json",
  svg: "xml",
};
