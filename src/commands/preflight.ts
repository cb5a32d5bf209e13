import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { dirname } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { readOtlpHeaders } from "../config/otlp-headers.ts";
import { checkTlsFiles } from "../http/connection/tls-server.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");

/**
 * Checks the settings of `serve` against the machine before anything is created: files that must exist, and hosts
 * that are reachable from other machines.
 *
 * @throws ConfigError with all problems
 */
export function checkServeSettings(config: Config): void {
  const problems = [
    ...tlsProblems(config),
    ...hostProblems(config),
    ...sshKeyProblems(config),
    ...auditFileProblems(config),
    ...auditRetentionProblems(config),
    ...headerProblems(config),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
}

/**
 * Checks the key for ssh repositories against ssh's own rules.
 *
 * @throws ConfigError when the file cannot be read, or others can read it too
 */
export function checkSshKey(config: Pick<Config, "sshKeyFile">): void {
  const problems = sshKeyProblems(config);
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Returns whether a listener on this host is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? host.toLowerCase() === "localhost"
    : LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4");
}

function headerProblems({ otlpHeadersFile }: Config): readonly string[] {
  try {
    readOtlpHeaders(otlpHeadersFile, {});
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function tlsProblems({ tlsCert, tlsKey }: Config): string[] {
  if (tlsCert === "") return [];
  const problems: string[] = [];
  const read = (flag: string, file: string) => {
    try {
      const pem = readFileSync(file);
      if (pem.includes("-----BEGIN ")) return pem;
      problems.push(`${flag} ${file} is no PEM file: it has no line that begins with -----BEGIN`);
    } catch (error) {
      problems.push(`${flag} ${file} cannot be read: ${(error as Error).message}`);
    }
    return undefined;
  };
  const [cert, key] = [read("--tls-cert", tlsCert), read("--tls-key", tlsKey)];
  try {
    if (cert && key) checkTlsFiles({ cert, key });
  } catch (error) {
    problems.push(`--tls-cert and --tls-key cannot be used together: ${(error as Error).message}`);
  }
  return problems;
}

/** Requires a base URL: without one, clients could get links to unusable addresses such as 0.0.0.0. */
function hostProblems({ host, baseUrl }: Config): string[] {
  if (isLoopback(host) || baseUrl !== "") return [];
  return [
    `--host ${host} is reached from other machines, so --base-url must say under which URL they reach it, such as https://chartroom.example.org`,
  ];
}

function sshKeyProblems({ sshKeyFile: file }: Pick<Config, "sshKeyFile">): string[] {
  if (file === "") return [];
  try {
    const { mode } = statSync(file);
    readFileSync(file);
    // ssh ignores a key that others can read, so every clone would fail.
    if ((mode & 0o077) !== 0) return [`--ssh-key-file ${file} can be read by others: chmod 600 it`];
    return [];
  } catch (error) {
    return [`--ssh-key-file ${file} cannot be read: ${(error as Error).message}`];
  }
}

function auditFileProblems({ auditFile: file }: Pick<Config, "auditFile">): string[] {
  if (file === "") return [];
  try {
    // The folder must be writable too: rotation renames full files in it.
    accessSync(dirname(file), constants.W_OK | constants.X_OK);
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
    return existsSync(file) && !statSync(file).isFile() ? [`--audit-file ${file} is no file`] : [];
  } catch (error) {
    return [`--audit-file ${file} cannot be written: ${(error as Error).message}`];
  }
}

function auditRetentionProblems(config: AuditRetention): string[] {
  if (config.auditRetention === 0 || config.auditFile || config.auditOtlpEndpoint) return [];
  return ["--audit-retention needs --audit-file or --audit-otlp-endpoint, which have rows before they go"];
}

type AuditRetention = Pick<Config, "auditRetention" | "auditFile" | "auditOtlpEndpoint">;

/** Requires another destination for audit rows before retention deletes them. @throws ConfigError */
export function requireAuditTarget(config: AuditRetention): void {
  const problems = auditRetentionProblems(config);
  if (problems.length > 0) throw new ConfigError(problems);
}
