import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

/** Starts a server that cannot start. @returns what it says */
async function failed(url: string, args: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await runCommand(
    ["serve", "--port", "0", "--data-dir", temporaryFolder(), ...args],
    { CHARTROOM_DATABASE_URL: url },
  );
  expect(code).toBe(1);
  expect(stdout).not.toContain("cr_pat_");
  // Sentences, and no stack.
  expect(stderr).toMatch(/^chartroom: /);
  expect(stderr).not.toMatch(/^ +at /m);
  return stderr;
}

const urlAs = (url: string, user: string) => url.replace("postgres@", `${user}@`);

/** Creates a user who is no superuser and owns a new database. @returns the address as that user */
async function databaseOf(user: string, limit: string): Promise<string> {
  await onCluster(`${cluster.url}/postgres`, `create role ${user} login ${limit}`);
  return urlAs(await emptyDatabase(cluster, `owner ${user}`), user);
}

describe("the URL of a database", () => {
  const example = "must be a URL such as postgres://user@host:5432/database";
  test.each([
    ["of another engine", "mysql://localhost/x", example],
    ["that names no database", "postgres://localhost", example],
    ["that is none", "localhost", example],
    ["with a password", "postgres://me:secret@localhost/x", "use --database-password-file or PGPASSWORD"],
    [
      "with a password as parameter",
      "postgres://me@localhost/x?password=secret",
      'has the parameter "password"',
    ],
    [
      "with settings of the session",
      "postgres://localhost/x?options=-c%20geqo=off",
      'has the parameter "options"',
    ],
    ["with an unknown TLS mode", "postgres://localhost/x?sslmode=maybe", 'has the sslmode "maybe"'],
    ["that prefers TLS", "postgres://localhost/x?sslmode=prefer", "disable, require, verify-ca, verify-full"],
    ["that allows TLS", "postgres://localhost/x?sslmode=allow", "disable, require, verify-ca, verify-full"],
    ["with a CA that is not named", "postgres://localhost/x?sslmode=verify-ca", "without a sslrootcert"],
    [
      "with a file that is missing",
      "postgres://localhost/x?sslmode=verify-ca&sslrootcert=/absent",
      "no such file or directory, open '/absent'",
    ],
  ])("%s is refused with what to write", async (_, url, sentence) => {
    const stderr = await failed(url);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain("secret");
  });
});

describe("a start", () => {
  test("where nothing listens says so", async () => {
    const stderr = await failed("postgres://postgres@127.0.0.1:1/x");
    expect(stderr).toContain("the database x at 127.0.0.1:1 cannot be used");
    expect(stderr).toContain("nothing listens at its address; start it, or correct --database-url");
  });

  test("where what listens does not answer says so", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { readonly port: number };
    expect(await failed(`postgres://postgres@127.0.0.1:${port}/x`)).toContain("it does not answer");
    silent.close();
  });

  test("without the database says that it does not exist", async () => {
    expect(await failed(`${cluster.url}/absent`)).toContain("the database does not exist");
  });

  test("as a user who is unknown says so", async () => {
    const url = await emptyDatabase(cluster);
    expect(await failed(urlAs(url, "nobody"))).toContain("the database refuses the user or the password");
  });

  test("as a user who may not make tables says so", async () => {
    await onCluster(`${cluster.url}/postgres`, "create role guest login");
    const url = await emptyDatabase(cluster);
    expect(await failed(urlAs(url, "guest"))).toContain("permission denied for schema public");
  });

  test("on an older engine says which is needed", async () => {
    const url = await emptyDatabase(cluster);
    // The real engine, whose answer to the one question is another: of an older one there is no package.
    await onCluster(
      url,
      `create function public.current_setting(name text) returns text language sql as
      $$ select case name when 'server_version_num' then '140012' when 'server_version' then '14.12'
        else pg_catalog.current_setting(name) end $$`,
    );
    const name = new URL(url).pathname.slice(1);
    await onCluster(url, `alter database ${name} set search_path = public, pg_catalog`);
    expect(await failed(url)).toContain("is PostgreSQL 14.12: Chartroom needs 15 or newer; upgrade it");
  });

  test("on a database of another encoding says how to create one", async () => {
    const url = await emptyDatabase(cluster, "encoding 'LATIN1' template template0");
    expect(await failed(url)).toContain("create one with");
  });

  test("with fewer connections than a server opens says which settings to change", async () => {
    const url = await databaseOf("sparing", "connection limit 16");
    const stderr = await failed(url);
    expect(stderr).toContain("takes 16 connections of this user, and this server opens up to 17");
    expect(stderr).toContain("--database-connections");
  });

  test("with no connection left says which settings to change", async () => {
    const url = await databaseOf("busy", "connection limit 17");
    const held = Array.from({ length: 17 }, () => new pg.Client({ connectionString: url }));
    await Promise.all(held.map((client) => client.connect()));
    expect(await failed(url)).toContain("takes no more connections: raise its max_connections");
    await Promise.all(held.map((client) => client.end()));
    const server = await startServer({
      dataDir: temporaryFolder(),
      env: { CHARTROOM_DATABASE_URL: url },
    });
    await server.stop();
  });

  test("with a password file that is missing names it", async () => {
    const url = await emptyDatabase(cluster);
    const stderr = await failed(url, ["--database-password-file", "/absent"]);
    expect(stderr).toContain("--database-password-file /absent cannot be read");
  });

  test("with keys that are not those of the data does not happen", async () => {
    const url = await emptyDatabase(cluster);
    const server = await startServer({
      dataDir: temporaryFolder(),
      env: { CHARTROOM_DATABASE_URL: url },
    });
    await server.stop();
    expect(await failed(url)).toContain("is not the one that the data in");
  });

  test("on an empty database says in which one the new installation is", async () => {
    const url = await emptyDatabase(cluster);
    const server = await startServer({
      dataDir: temporaryFolder(),
      env: { CHARTROOM_DATABASE_URL: url, PGPASSWORD: "kept-to-itself" },
    });
    expect(await firstTokenOrEnd(server)).toBeUndefined();
    await server.stop();
    const { pathname, host } = new URL(url);
    const place = `the database ${pathname.slice(1)} at ${host}`;
    expect(server.output()).toContain(`an organization and its administrator were created in ${place}.`);
    expect(server.log()).toContainEqual(
      expect.objectContaining({
        data: place,
        msg: "this is a new installation, since there was no organization",
      }),
    );
    expect(server.output() + server.logText()).not.toContain("kept-to-itself");
  });

  test("of two at once with different keys happens once", async () => {
    const url = await emptyDatabase(cluster);
    const run = () =>
      startServer({ dataDir: temporaryFolder(), env: { CHARTROOM_DATABASE_URL: url } }).then(
        async (server) => ({ server, refusal: await firstTokenOrEnd(server) }),
        (error: Error) => ({ server: undefined, refusal: error.message }),
      );
    const results = await Promise.all([run(), run()]);
    const refusals = results.map(({ refusal }) => refusal).filter((text) => text !== undefined);
    expect(refusals).toEqual([expect.stringContaining("it lacks the key")]);
  });

  test("during a command that needs all servers stopped does not happen", async () => {
    const url = await emptyDatabase(cluster);
    const dataDir = temporaryFolder();
    const server = await startServer({ dataDir, env: { CHARTROOM_DATABASE_URL: url } });
    await server.stop();
    const command = new pg.Client({ connectionString: url });
    await command.connect();
    // As `move` holds it, which may take hours.
    await command.query("select pg_advisory_lock($1::int, 3)", [0x43_48_41_52]);
    expect(await failed(url, ["--key-file", `${dataDir}/key.json`])).toContain(
      "a command that needs all servers stopped uses the database: start the server when it has ended",
    );
    await command.end();
  });

  test("on a socket of the machine serves", async () => {
    const url = await emptyDatabase(cluster);
    const { pathname, port } = new URL(url);
    const server = await startServer({
      dataDir: temporaryFolder(),
      env: {
        CHARTROOM_DATABASE_URL: `postgres:${pathname}?host=${cluster.folder}`,
        PGPORT: port,
        PGUSER: "postgres",
      },
    });
    expect(await firstTokenOrEnd(server)).toBeUndefined();
    const token = /cr_pat_\w+/.exec(server.output())?.[0] ?? "";
    await succeeded(post({ ...server, token }, "ProjectService/ListProjects", {}));
    await server.stop();
  });
});

/** Waits for the first token of a server, or its end. @returns what it said when it ended */
async function firstTokenOrEnd(server: TestServer): Promise<string | undefined> {
  const { process: child } = server;
  while (!/cr_pat_\w+'/.test(server.output())) {
    if (child.exitCode !== null) return server.logText();
    await new Promise<void>((resolve) => {
      child.stdout?.once("data", () => resolve());
      child.once("close", () => resolve());
    });
  }
  return undefined;
}
