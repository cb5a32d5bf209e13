import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { RunnerError } from "../protocol/runner-error.ts";
import { DEFAULT_PORTS, type EgressRule, parseHost } from "./egress-rules.ts";

/** The sets of hosts that the machine's operator configures. */
export type NamedSet = "registries" | "models";
export type NamedHosts = Readonly<Record<NamedSet, readonly EgressRule[]>>;

const NO_HOSTS: NamedHosts = { registries: [], models: [] };
const MAX_LINES = 1_000;

/**
 * Reads the operator's file of hosts. Each line has the name of a set and a host, with a port unless 80 and 443 are
 * meant, such as `models api.example.org` or `registries *.example.org:8443`. A comment begins with #.
 *
 * @param file empty for no file
 * @throws RunnerError for a file that cannot be read or an invalid line
 */
export function readNamedHosts(file: string): NamedHosts {
  if (file === "") return NO_HOSTS;
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new RunnerError(`--egress-hosts ${file} cannot be read: ${(error as Error).message}`);
  }
  const lines = text.split("\n");
  if (lines.length > MAX_LINES)
    throw new RunnerError(`--egress-hosts ${file} has more than ${MAX_LINES} lines`);
  const found: Record<NamedSet, EgressRule[]> = { registries: [], models: [] };
  for (const [index, line] of lines.entries()) {
    const [set, host, ...rest] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (set === "" || set === undefined) continue;
    const rule = (set === "registries" || set === "models") && rest.length === 0 && ruleOf(set, host ?? "");
    if (!rule) {
      throw new RunnerError(
        `--egress-hosts ${file}, line ${index + 1}: it must be registries or models and a host, such as "models api.example.org"`,
      );
    }
    found[rule.name as NamedSet].push(rule);
  }
  return found;
}

function ruleOf(name: NamedSet, text: string): EgressRule | undefined {
  const below = text.startsWith("*.") ? "*." : "";
  const parsed = parseHost(text.slice(below.length));
  if (!parsed || (below !== "" && isIP(parsed.host) !== 0)) return undefined;
  const { host, port } = parsed;
  return { name, host: below + host, ports: port === undefined ? DEFAULT_PORTS : [port] };
}
