/** A program that people use, with what registers it by a name. */
export interface AgentPreset {
  readonly name: string;
  /** Program and arguments, as `agent add` takes them. */
  readonly command: string;
  readonly form: "acp";
  /** Programs that must be installed on the runner's machine. */
  readonly install: string;
  /** The variable with the key of its model, which the program reads. */
  readonly secret: string;
  /** True when it opens a session without a key, an account or a network; otherwise it demands authentication. */
  readonly opensWithoutKey: boolean;
}

/** From the packages' own metadata and files, 2026-11-25. docs/agents/presets.md has the same. */
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
