import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import type { CredentialFor, GitCredential } from "../../src/runner/git/git-access.ts";
import { checkOutSources } from "../../src/runner/git/git-checkout.ts";
import { commitAll } from "../../src/runner/git/git-commit.ts";
import { pushBranch } from "../../src/runner/git/git-push.ts";
import type { GitSettings } from "../../src/runner/git/git-tools.ts";
import { type GitHttpOptions, type GitHttpServer, serveGit } from "../harness/git-http-server.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const TOKEN = "tok/en+with odd%characters'\"$(id)";
const TRAILERS = { workflowId: "w", executionId: "e", actionId: "a" };
const servers: GitHttpServer[] = [];

let root: string;
let repository: BareRepository;
/** Path of the repository on a server. */
let path: string;

beforeAll(() => {
  root = temporaryFolder();
  repository = bareRepository(root, { "README.md": "one\n" });
  path = repository.folder.slice(root.length);
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});
afterAll(stopAll);

async function serve(options: GitHttpOptions = {}): Promise<GitHttpServer> {
  const server = await serveGit(root, options);
  servers.push(server);
  return server;
}

const opening =
  (credential: GitCredential | undefined, asked: string[] = []): CredentialFor =>
  async (host) => {
    asked.push(host);
    return credential;
  };
const PAT: GitCredential = { token: TOKEN, source: Source.PAT };

async function checkOut(
  remoteUri: string,
  credentialFor: CredentialFor = opening(undefined),
  settings: Partial<GitSettings> = {},
) {
  const tools = await realGit(settings);
  const tree = temporaryFolder();
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri } } }],
  });
  const [checkout] = await checkOutSources(tools, initializer, { tree, credentialFor });
  if (!checkout) throw new Error("nothing was checked out");
  const folder = join(tree, checkout.location);
  return { tools, tree, checkout, folder, own: { gitFolder: join(folder, ".git"), tree: folder } };
}

/** Arguments of every process of the machine. */
function commandLines(): string {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8");
      } catch {
        return "";
      }
    })
    .join("\n");
}

/** Arguments and variables of each git that this process has started and that waits for an answer. */
function gitsUnderWay(): { readonly args: string[]; readonly variables: string[] }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [, parent] = / \S (\d+) /.exec(readFileSync(`/proc/${name}/stat`, "utf8")) ?? [];
        const [program, ...args] = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
        const variables = readFileSync(`/proc/${name}/environ`, "utf8").split("\0");
        return program === "git" && Number(parent) === process.pid ? [{ args, variables }] : [];
      } catch {
        return [];
      }
    });
}

function textOfFiles(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

describe("a credential", () => {
  test("opens the remote to be read and written, without standing anywhere else", async () => {
    let seen = "";
    const server = await serve({
      credential: { user: "oauth2", password: TOKEN },
      before: () => {
        seen += commandLines();
        return false;
      },
    });
    const asked: string[] = [];
    const credentialFor = opening(PAT, asked);
    const { tools, tree, checkout, folder, own } = await checkOut(`${server.url}${path}`, credentialFor);
    expect(asked).toEqual([`127.0.0.1:${server.port}`]);
    runGit(folder, ["commit", "-q", "--allow-empty", "-m", "own"]);
    const author = { name: "Grace", email: "grace@example.org" };
    const commit = await commitAll(tools, { repository: own }, { message: "x", author, trailers: TRAILERS });
    const push = {
      repository: own,
      remoteUri: checkout.remoteUri,
      commit,
      branch: "by-http",
      trailers: TRAILERS,
      credentialFor,
    };
    expect(await pushBranch(tools, push)).toBe("created");
    expect(repository.find("by-http")).toBe(commit);
    expect(seen).toContain("git-remote-http");
    for (const place of [seen, textOfFiles(tree), textOfFiles(join(tools.home, ".."))]) {
      expect(place).not.toContain("tok/en");
    }
    expect(server.requests.every((request) => !request.path.includes("tok"))).toBe(true);
  });

  test.each<[string, GitCredential, string, string]>([
    ["its own user name", PAT, "ada@", "ada"],
    ["its own user name, decoded", PAT, "a%40b@", "a@b"],
    ["none for an OAuth token, which has one of its own", { ...PAT, source: Source.OAUTH }, "ada@", "oauth2"],
  ])("goes with the address's user name: %s", async (_, credential, user, expected) => {
    const server = await serve({ credential: { user: expected, password: TOKEN } });
    const { checkout, folder } = await checkOut(
      `http://${user}127.0.0.1:${server.port}${path}`,
      opening(credential),
    );
    expect(checkout.remoteUri).toBe(`${server.url}${path}`);
    expect(runGit(folder, ["remote", "get-url", "origin"])).toBe(`${server.url}${path}`);
  });

  test("that is wrong, or missing, is a failure that says what to do and not what the secret is", async () => {
    const server = await serve({ credential: { user: "oauth2", password: "another" } });
    for (const credential of [PAT, undefined]) {
      const failure = await checkOut(`${server.url}${path}`, opening(credential)).catch((error) => error);
      expect(failure).toMatchObject({ reason: "git_unauthorized", retriable: false });
      expect(failure.message).toContain("store a host authentication token");
      expect(failure.message).not.toContain("tok/en");
    }
  });

  test("goes over plain http to no host but those that the operator names", async () => {
    const server = await serve({ credential: { user: "oauth2", password: TOKEN } });
    const open = await serve();
    const asked: string[] = [];
    const naming = (...hosts: string[]) => ({
      remotes: { allowPrivateAddresses: true, allowFiles: false, plainHttpHosts: new Set(hosts) },
    });
    await expect(
      checkOut(`${server.url}${path}`, opening(PAT, asked), naming(`127.0.0.1:${open.port}`, "127.0.0.1")),
    ).rejects.toMatchObject({ reason: "credential_withheld", retriable: false });
    await checkOut(`${open.url}${path}`, opening(PAT, asked), naming());
    expect(asked).toEqual([]);
    expect(server.requests.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    await checkOut(`${server.url}${path}`, opening(PAT, asked), naming(`127.0.0.1:${server.port}`));
    expect(asked).toEqual([`127.0.0.1:${server.port}`]);
  });

  test("is masked where the remote repeats it", async () => {
    const basic = Buffer.from(`oauth2:${TOKEN}`).toString("base64");
    const server = await serve({
      before: (req, res) => {
        if (req.headers.authorization === undefined) {
          res.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
        } else {
          res.writeHead(403, { "content-type": "text/plain" });
          res.end(`you are ${TOKEN} (${encodeURIComponent(TOKEN)}) by ${req.headers.authorization}`);
        }
        return true;
      },
    });
    const failure = await checkOut(`${server.url}${path}`, opening(PAT)).catch((error) => error);
    expect(failure.reason).toBe("git_forbidden");
    expect(failure.message).toContain("you are ***");
    for (const secret of ["tok/en", "tok%2Fen", basic]) expect(failure.message).not.toContain(secret);
  });
});

describe("git", () => {
  test("may speak the remote's protocol alone, and takes no remote for an option", async () => {
    const gits: ReturnType<typeof gitsUnderWay> = [];
    const server = await serve({
      before: () => {
        gits.push(...gitsUnderWay());
        return false;
      },
    });
    const remoteUri = `${server.url}${path}`;
    const { tools, folder, own } = await checkOut(remoteUri);
    runGit(folder, ["commit", "-q", "--allow-empty", "-m", "own"]);
    const author = { name: "Grace", email: "grace@example.org" };
    const commit = await commitAll(tools, { repository: own }, { message: "x", author, trailers: TRAILERS });
    const credentialFor = opening(undefined);
    await pushBranch(tools, {
      repository: own,
      remoteUri,
      commit,
      branch: "alone",
      trailers: TRAILERS,
      credentialFor,
    });
    const commands = ["fetch", "ls-remote", "push"];
    const seen = gits.map(({ args, variables }) => ({
      command: args.find((each) => commands.includes(each)),
      remote: args[args.indexOf("--") + 1] ?? "",
      protocols: variables.filter((each) => each.startsWith("GIT_ALLOW_PROTOCOL=")),
    }));
    expect([...new Set(seen.map(({ command }) => command))].toSorted()).toEqual(commands);
    for (const { remote, protocols } of seen) {
      expect(["origin", remoteUri]).toContain(remote);
      expect(protocols).toEqual(["GIT_ALLOW_PROTOCOL=http"]);
    }
  });
});

describe("a redirect", () => {
  test("to another host is not followed, neither with a credential nor without", async () => {
    const other = await serve();
    const server = await serve({
      before: (req, res) => {
        res.writeHead(302, { location: `${other.url}${req.url}` }).end();
        return true;
      },
    });
    for (const credential of [PAT, undefined]) {
      await expect(checkOut(`${server.url}${path}`, opening(credential))).rejects.toMatchObject({
        reason: "remote_moved",
        message: expect.stringContaining("use the address that it leads to"),
      });
    }
    expect(other.requests).toEqual([]);
  });

  test("to the same address with .git at its end costs nobody a failure", async () => {
    const server = await serve({
      before: (req, res) => {
        if (req.url?.includes(".git")) return false;
        res.writeHead(301, { location: req.url?.replace("/info/refs", ".git/info/refs") }).end();
        return true;
      },
    });
    const { checkout } = await checkOut(`${server.url}${path.replace(/\.git$/, "/")}`);
    expect(checkout.remoteUri).toBe(`${server.url}${path}`);
  });
});

describe("the address of a name", () => {
  test("is the one that was checked: git looks no name up again", async () => {
    const server = await serve({ credential: { user: "oauth2", password: TOKEN } });
    const remoteUri = `http://git.chartroom.example:${server.port}${path}`;
    const { checkout } = await checkOut(remoteUri, opening(PAT), { resolve: async () => ["127.0.0.1"] });
    expect(checkout.remoteUri).toBe(remoteUri);
    expect(new Set(server.requests.map(({ host }) => host))).toEqual(
      new Set([`git.chartroom.example:${server.port}`]),
    );
  });

  test("gets no request when it is private and private ones are not allowed", async () => {
    const server = await serve();
    const remotes = { allowPrivateAddresses: false, allowFiles: false, plainHttpHosts: new Set<string>() };
    for (const host of ["127.0.0.1", "localhost", "0x7f.1", "git.chartroom.example"]) {
      const resolve = async () => ["127.0.0.1"];
      const remoteUri = `http://${host}:${server.port}${path}`;
      await expect(checkOut(remoteUri, opening(PAT), { remotes, resolve })).rejects.toMatchObject({
        reason: "remote_refused",
      });
    }
    expect(server.requests).toEqual([]);
  });
});

describe("a remote that fails", () => {
  test.each([
    [404, "repository_not_found", false],
    [500, "remote_unreachable", true],
    [503, "remote_unreachable", true],
  ])("with %d is %s", async (status, reason, retriable) => {
    const server = await serve({
      before: (_, res) => {
        res.writeHead(status).end();
        return true;
      },
    });
    await expect(checkOut(`${server.url}${path}`)).rejects.toMatchObject({ reason, retriable });
  });

  test("by not being there may be there later", async () => {
    const server = await serve();
    await server.close();
    servers.length = 0;
    await expect(checkOut(`${server.url}${path}`)).rejects.toMatchObject({
      reason: "remote_unreachable",
      retriable: true,
    });
  });

  test("to answer in time is ended", async () => {
    const server = await serve({ before: () => true });
    await expect(
      checkOut(`${server.url}${path}`, opening(undefined), { timeoutMs: 300 }),
    ).rejects.toMatchObject({
      reason: "git_timed_out",
      retriable: true,
    });
  });
});

describe("a branch that changes during a push", () => {
  test.each([
    ["made", "new-at-once", undefined],
    ["moved by its own workflow", "replaced-at-once", TRAILERS],
  ])("is not overwritten: %s", async (_, branch, before) => {
    let isArmed = false;
    const server = await serve({
      before: (req) => {
        if (isArmed && req.url?.includes("service=git-receive-pack")) {
          isArmed = false;
          repository.commit({ theirs: "t" }, { branch, from: "main" });
        }
        return false;
      },
    });
    const author = { name: "Grace", email: "grace@example.org" };
    const credentialFor = opening(undefined);
    for (const round of before ? ["first", "second"] : ["second"]) {
      const { tools, folder, own, checkout } = await checkOut(`${server.url}${path}`);
      runGit(folder, ["commit", "-q", "--allow-empty", "-m", round]);
      const commit = await commitAll(
        tools,
        { repository: own },
        { message: round, author, trailers: TRAILERS },
      );
      const push = {
        repository: own,
        remoteUri: checkout.remoteUri,
        commit,
        branch,
        trailers: TRAILERS,
        credentialFor,
      };
      if (round === "first") await pushBranch(tools, push);
      else {
        isArmed = true;
        await expect(pushBranch(tools, push)).rejects.toMatchObject({
          reason: "branch_moved",
          retriable: true,
        });
        expect(isArmed).toBe(false);
      }
    }
    expect(repository.list(branch)).toContain("theirs");
  });
});

test("the page of a tag leads to it where a branch has its name, too, and to nothing else", async () => {
  const tagged = bareRepository(root, { "a.txt": "one\n" });
  const tag = tagged.find("main");
  tagged.git("tag", "both", "main");
  tagged.commit({ "a.txt": "two\n" }, { branch: "both", from: "main" });
  const { url } = await serve();
  const tools = await realGit();
  const checkOutPage = (page: string) => {
    const value = { url: `${url}${tagged.folder.slice(root.length)}/src/tag/${page}` };
    const initializer = create(EnvironmentInitializerSchema, {
      specs: [{ spec: { case: "contextUrl", value } }],
    });
    return checkOutSources(tools, initializer, {
      tree: temporaryFolder(),
      credentialFor: opening(undefined),
    });
  };
  for (const page of ["both", "both/a.txt"]) {
    const [checkout] = await checkOutPage(page);
    expect([checkout?.commit, checkout?.branch]).toEqual([tag, undefined]);
  }
  await expect(checkOutPage("main/a.txt")).rejects.toMatchObject({ reason: "revision_not_found" });
});
