/** An agent program, and what registers it under a name. */
export interface AgentPreset {
  readonly name: string;
  /** Program and arguments in the form that `agent add` takes. */
  readonly command: string;
  readonly form: "acp";
  /** Programs that must be installed on the runner's machine. */
  readonly install: string;
  /** The environment variable from which the program reads its model's key. */
  readonly secret: string;
  /** True if it opens a session without a key, account or network; otherwise it requires authentication. */
  readonly opensWithoutKey: boolean;
}

/** From the packages' metadata and files, 2026-11-25. docs/agents/presets.md has the same list. */
export const AGENT_PRESETS: readonly AgentPreset[] = [
  {
    name: "claude",
    command: '["claude-agent-acp"]',
    form: "acp",
    install: "npm install --global @agentclientprotocol/claude-agent-acp@0.101.0",
    secret: "ANTHROPIC_API_KEY",
    opensWithoutKey: true,
  },
  {
    name: "codex",
    command: '["codex-acp"]',
    form: "acp",
    install: "npm install --global @agentclientprotocol/codex-acp@2.6.0",
    secret: "CODEX_API_KEY",
    opensWithoutKey: false,
  },
];

/** Returns the presets as a list for people and scripts. */
export function listPresets() {
  return {
    headings: ["NAME", "COMMAND", "INSTALL", "SECRET"],
    rows: AGENT_PRESETS.map(({ name, command, install, secret }) => [name, command, install, secret]),
  };
}
