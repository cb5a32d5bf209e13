import { type GitSettings, type GitTools, prepareGit } from "../../src/runner/git/git-tools.ts";
import { createCommandRunner, type Programs } from "../../src/runner/process/command.ts";
import { temporaryFolder } from "./server.ts";

/** Real programs, as the runner runs them. */
export const realPrograms: Programs = {
  run: createCommandRunner((groupId, signal) => process.kill(-groupId, signal), { graceMs: 500 }),
  path: process.env.PATH ?? "",
};

/**
 * Prepares the real git as the runner uses it; by default local folders and plain http are allowed
 * as remotes.
 */
export function realGit(settings: Partial<GitSettings> = {}): Promise<GitTools> {
  return prepareGit({
    programs: realPrograms,
    folder: temporaryFolder(),
    remotes: { allowPrivateAddresses: true, allowFiles: true, plainHttpHosts: { has: () => true } },
    ...settings,
  });
}
