import { registerHooks } from "node:module";

/*
 * A start loads a thousand modules, and Node resolves each of their imports again, which is a third of the processor
 * time that loading them takes. Two things follow from what it has resolved before:
 */

/** What a name means in the files of a folder, such as that of a package: Node looks for it from the folder upwards. */
const names = new Map();

/** The format of the files of a folder with an ending: it is that of the nearest package.json. */
const formats = new Map();

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL, conditions, importAttributes } = context;
    const isPlainImport =
      parentURL?.startsWith("file:") &&
      conditions.includes("import") &&
      Object.keys(importAttributes).length === 0;
    if (!isPlainImport) return next(specifier, context);
    if (!specifier.startsWith(".")) {
      const key = `${folderOf(parentURL)} ${specifier}`;
      const known = names.get(key);
      if (known) return known;
      const resolved = next(specifier, context);
      names.set(key, { ...resolved, shortCircuit: true });
      return resolved;
    }
    const { href: url } = new URL(specifier, parentURL);
    const key = `${folderOf(url)} ${url.slice(url.lastIndexOf("."))}`;
    const format = formats.get(key);
    // Whether it exists shows when it is read.
    if (format) return { url, format, shortCircuit: true };
    const resolved = next(specifier, context);
    // Not of a symbolic link, which leads to another folder.
    if (resolved.url === url && resolved.format) formats.set(key, resolved.format);
    return resolved;
  },
});

function folderOf(url) {
  return url.slice(0, url.lastIndexOf("/"));
}
