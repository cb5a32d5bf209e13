import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandEnvironment, type Programs } from "../process/command.ts";

/** The files of /etc that programs need and that hold no secret: no users, keys or service settings. */
const CONFIGURATION = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "ca-certificates.conf",
  "crypto-policies",
  "debian_version",
  "fonts",
  "host.conf",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "lsb-release",
  "magic",
  "magic.mime",
  "mailcap",
  "maven",
  "mime.types",
  "networks",
  "nsswitch.conf",
  "os-release",
  "perl",
  "pki/ca-trust",
  "pki/tls/cert.pem",
  "pki/tls/certs",
  "pki/tls/openssl.cnf",
  "profile",
  "profile.d",
  "protocols",
  "redhat-release",
  "rpc",
  "services",
  "shells",
  "ssl/cert.pem",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
];
/** Settings of languages, with or without a version. */
const OF_LANGUAGES = /^(java|python|php|ruby|R|ghc|ImageMagick)([-\d.]|$)/;

/** The home folder in /etc/passwd, a link to the environment's home. */
export const HOME_LINK = "/home/work";

/**
 * Makes the /etc of isolated work: copies of the files that programs need, and its own lists of users.
 *
 * @param folder is removed and created again
 * @param user the user and group of the work
 */
export async function makeEtcFolder(
  programs: Programs,
  folder: string,
  user: { readonly uid: number; readonly gid: number },
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const languages = (await readdir("/etc")).filter((name) => OF_LANGUAGES.test(name));
  const names = [...CONFIGURATION, ...languages].filter((name) => existsSync(join("/etc", name)));
  // Skips files that the runner cannot read.
  await programs.run({
    program: "cp",
    args: ["-a", "--parents", "--", ...names, folder],
    folder: "/etc",
    environment: commandEnvironment(programs, "/"),
  });
  const passwd = [
    "root:x:0:0:root:/root:/usr/sbin/nologin",
    `work:x:${user.uid}:${user.gid}:work:${HOME_LINK}:/bin/sh`,
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
  ];
  const group = ["root:x:0:", `work:x:${user.gid}:`, "nogroup:x:65534:"];
  const written = { passwd, group, hosts: [], "resolv.conf": [] };
  for (const [name, lines] of Object.entries(written)) {
    await writeFile(join(folder, name), lines.map((line) => `${line}\n`).join(""));
    await chmod(join(folder, name), 0o644);
  }
  // The runner's umask may have reduced the mode at creation.
  await chmod(folder, 0o755);
}
