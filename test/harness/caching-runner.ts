import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { EnvironmentInitializerSchema, type GitInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { RepositoryCache } from "../../src/runner/cache/repository-cache.ts";
import type { CredentialFor } from "../../src/runner/git/git-access.ts";
import { type CheckoutContext, checkOutSources } from "../../src/runner/git/git-checkout.ts";
import type { GitSettings, GitTools } from "../../src/runner/git/git-tools.ts";
import { runGit } from "./git-repository.ts";
import { realGit, realPrograms } from "./runner-git.ts";
import { temporaryFolder } from "./server.ts";

/** A repository in a workspace of its own. */
export interface ClonedRepository {
  readonly folder: string;
  /** Runs a plain git in it. */
  git(...args: string[]): string;
  /** Returns whether it has an object, whatever leads to it. */
  has(id: string): boolean;
}

type CloneContext = Partial<Omit<CheckoutContext, "tree" | "cache">>;

const noCredential: CredentialFor = async () => undefined;

/** What a runner clones with: real git and a cache of repositories. */
export class CachingRunner {
  readonly folder: string;
  readonly warnings: string[] = [];
  readonly #tools: GitTools;
  readonly #maxBytes: number;
  readonly #commands: string[];
  #cache: RepositoryCache | undefined;

  /** @param folder of the cache */
  static async start({
    folder = join(temporaryFolder(), "cache"),
    maxBytes = 2 ** 30,
    path = realPrograms.path,
  } = {}): Promise<CachingRunner> {
    const commands: string[] = [];
    const programs: GitSettings["programs"] = {
      path,
      run(command) {
        const args = command.args.filter((arg, index, all) => arg !== "-c" && all[index - 1] !== "-c");
        if (command.program === "git") commands.push(args[0] ?? "");
        return realPrograms.run(command);
      },
    };
    const runner = new CachingRunner(await realGit({ programs }), { folder, maxBytes, commands });
    await runner.restart();
    return runner;
  }

  private constructor(
    tools: GitTools,
    { folder, maxBytes, commands }: { folder: string; maxBytes: number; commands: string[] },
  ) {
    this.#tools = tools;
    this.folder = folder;
    this.#maxBytes = maxBytes;
    this.#commands = commands;
  }

  get cache(): RepositoryCache {
    if (!this.#cache) throw new Error("the runner has not started");
    return this.#cache;
  }

  /** Opens the cache as a new process does, which knows nothing of what git has checked. */
  async restart(): Promise<void> {
    const log = { warn: (facts: object) => void this.warnings.push(JSON.stringify(facts)) };
    this.#cache = await RepositoryCache.open({ folder: this.folder, maxBytes: this.#maxBytes, log });
  }

  /** Returns git's commands since the last call, such as `fetch`. */
  takeCommands(): readonly string[] {
    return this.#commands.splice(0);
  }

  /** Clones into a new workspace. */
  async clone(
    spec: MessageInitShape<typeof GitInitializerSchema>,
    { credentialFor = noCredential, ...context }: CloneContext = {},
  ): Promise<ClonedRepository> {
    const tree = join(temporaryFolder(), "tree");
    mkdirSync(tree);
    const initializer = create(EnvironmentInitializerSchema, {
      specs: [{ spec: { case: "git", value: { checkoutLocation: "r", ...spec } } }],
    });
    await checkOutSources(this.#tools, initializer, { tree, credentialFor, cache: this.cache, ...context });
    const folder = join(tree, "r");
    const git = (...args: string[]) => runGit(folder, args);
    return {
      folder,
      git,
      has(id) {
        try {
          git("cat-file", "-e", id);
          return true;
        } catch {
          return false;
        }
      },
    };
  }

  /** Returns the folders of the repositories that are cached. */
  repositories(): readonly string[] {
    return readdirSync(this.folder).map((name) => join(this.folder, name));
  }
}
