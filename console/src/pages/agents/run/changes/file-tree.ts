/** A folder of a tree of files, or a file. */
export type TreeNode<F> =
  | { readonly kind: "folder"; readonly path: string; readonly name: string; readonly nodes: TreeNode<F>[] }
  | { readonly kind: "file"; readonly path: string; readonly name: string; readonly file: F };

type Folder<F> = TreeNode<F> & { readonly kind: "folder" };

/** Returns files as a tree, in order. A folder that contains only another folder shares its line. */
export function treeOf<F extends { readonly path: string }>(files: readonly F[]): TreeNode<F>[] {
  const root: Folder<F> = { kind: "folder", path: "", name: "", nodes: [] };
  const folders = new Map([["", root]]);
  const folderAt = (path: string): Folder<F> => {
    const known = folders.get(path);
    if (known) return known;
    const cut = path.lastIndexOf("/");
    const made: Folder<F> = { kind: "folder", path, name: path.slice(cut + 1), nodes: [] };
    folders.set(path, made);
    folderAt(path.slice(0, Math.max(cut, 0))).nodes.push(made);
    return made;
  };
  for (const file of files) {
    const cut = file.path.lastIndexOf("/");
    const name = file.path.slice(cut + 1);
    folderAt(file.path.slice(0, Math.max(cut, 0))).nodes.push({ kind: "file", path: file.path, name, file });
  }
  return root.nodes.map(shortened);
}

function shortened<F>(node: TreeNode<F>): TreeNode<F> {
  if (node.kind === "file") return node;
  const [only] = node.nodes;
  if (node.nodes.length === 1 && only?.kind === "folder")
    return shortened({ ...only, name: `${node.name}/${only.name}` });
  return { ...node, nodes: node.nodes.map(shortened) };
}
