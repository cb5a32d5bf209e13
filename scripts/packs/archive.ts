import { execFileSync } from "node:child_process";
import { basename, dirname } from "node:path";

/**
 * Packs a folder into NAME.tar.gz so that the same files make the same archive: sorted, with one owner and one time, and
 * readable by all, whatever the umask was.
 *
 * @param time seconds since 1970, such as those of the commit
 */
export function packArchive(folder: string, archive: string, time: string): void {
  const tar = archive.replace(/\.gz$/, "");
  execFileSync("tar", [
    ...["--sort=name", "--owner=0", "--group=0", "--numeric-owner", `--mtime=@${time}`],
    ...["--mode=a+rX,u+w,go-w", "-C", dirname(folder), "-cf", tar, basename(folder)],
  ]);
  execFileSync("gzip", ["-n", tar]);
}
