import type { McpCapabilities, McpServer } from "@agentclientprotocol/sdk";
import type { AgentWork_McpServer as RegisteredServer } from "#gen/runner/v1/work_pb.js";
import { secretNames, withSecrets } from "../../../domain/agent/mcp/mcp-server.ts";
import type { Secrets } from "../../../domain/secrets.ts";

/** The servers of the Model Context Protocol that an agent is told of. */
export interface SessionServers {
  readonly servers: readonly McpServer[];
  /** A sentence for each server that it is not told of. */
  readonly problems: readonly string[];
}

/**
 * Returns the servers that an agent can use.
 * @param environment the variables of its program, among them secrets that are mounted so
 * @param secrets those that are named are masked from now on
 */
export function usableServers(
  registered: readonly RegisteredServer[],
  capabilities: McpCapabilities | undefined,
  environment: Readonly<Record<string, string>>,
  secrets: Secrets,
): SessionServers {
  const servers: McpServer[] = [];
  const problems: string[] = [];
  for (const server of registered) {
    const problem = problemOf(server, capabilities, environment);
    for (const name of Object.values(server.values).flatMap(secretNames))
      secrets.add(environment[name] ?? "");
    if (problem === undefined) servers.push(toServer(server, environment));
    else problems.push(`the agent is not told of the MCP server ${server.name}: ${problem}`);
  }
  return { servers, problems };
}

function problemOf(
  { url, values }: RegisteredServer,
  capabilities: McpCapabilities | undefined,
  environment: Readonly<Record<string, string>>,
): string | undefined {
  if (url !== "" && !capabilities?.http) return "it does not take servers with a URL";
  const missing = Object.values(values)
    .flatMap(secretNames)
    .find((name) => !Object.hasOwn(environment, name));
  return missing && `the run has no secret ${missing} as an environment variable`;
}

function toServer(
  { name, command, url, values }: RegisteredServer,
  environment: Readonly<Record<string, string>>,
): McpServer {
  const pairs = Object.entries(values).map(([key, value]) => ({
    name: key,
    value: withSecrets(value, (secret) => environment[secret] ?? ""),
  }));
  if (url !== "") return { type: "http", name, url, headers: pairs };
  const [program = "", ...args] = command;
  return { name, command: program, args, env: pairs };
}
