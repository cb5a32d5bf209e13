import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { Checkout } from "../git/git-checkout.ts";
import { requireInPlace } from "../git/tree-path.ts";
import { pathsOfSmallTree } from "../steps/small-tree.ts";
import { markerOf, type Workspace } from "../steps/workspace.ts";

/** A fingerprint by which an untouched checkout is recognized. A large checkout has none, since git scans it faster. */
export interface TreeStamp {
  /** The digest of the path, mode, inode, size and ctime of everything in it. Programs cannot set a ctime. */
  readonly digest: string;
  /** The newest ctime, in nanoseconds since 1970. */
  readonly newest: string;
}

/** Returns checkouts with their stamps. Call it before any command has run in the workspace. */
export function withStamps({ tree }: Workspace, checkouts: readonly Checkout[]): readonly Checkout[] {
  const [checkout] = checkouts;
  // With several checkouts, one could be nested in another, which counts as a change.
  if (checkout?.commit === undefined || checkouts.length > 1) return checkouts;
  const stamp = stampOf(join(tree, checkout.location));
  return stamp ? [{ ...checkout, stamp }] : checkouts;
}

/**
 * Returns whether nothing in a checkout has changed since it was created, neither its files nor its repository. Returns
 * false when that is not certain.
 *
 * @throws WorkFailure repository_replaced
 */
export async function isUntouched(workspace: Workspace, { location, stamp }: Checkout): Promise<boolean> {
  if (!stamp) return false;
  requireInPlace(workspace.tree, location);
  // A change in the same clock tick has the same ctime. The marker is written before any command runs.
  const marker = await lstat(markerOf(workspace), { bigint: true }).catch(() => undefined);
  if (!marker || BigInt(stamp.newest) >= marker.ctimeNs) return false;
  return stampOf(join(workspace.tree, location))?.digest === stamp.digest;
}

function stampOf(folder: string): TreeStamp | undefined {
  const paths = pathsOfSmallTree(folder);
  if (!paths) return undefined;
  const hash = createHash("sha256");
  let newest = 0n;
  for (const path of paths) {
    // Undefined for a name that is not UTF-8.
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stat) return undefined;
    const { mode, ino, size, ctimeNs } = stat;
    hash.update(`${path}\0${mode} ${ino} ${size} ${ctimeNs}\0`);
    if (ctimeNs > newest) newest = ctimeNs;
  }
  return { digest: hash.digest("hex"), newest: String(newest) };
}
