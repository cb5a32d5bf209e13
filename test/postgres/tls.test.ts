import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Certificates, makeCertificates } from "../harness/certificates.ts";
import { type PostgresCluster, startPostgres, UNPRIVILEGED } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const CERTIFICATE = "the certificate of the database is not one that sslmode and sslrootcert accept";
const PASSWORD = "p w'ä";

let certificates: Certificates;
/** Files of the database's own certificate. */
let own: { readonly cert: string; readonly key: string };
let cluster: PostgresCluster;
/** The address of the data as a user who needs TLS and a password. */
let url: string;
let keyFile: string;
let passwordFile: string;

/** Who may connect, and how: the superuser for the test itself, users with a password, one with a certificate. */
const ACCESS = `
  local   all postgres                  trust
  host    all postgres     127.0.0.1/32 trust
  hostssl all crew         127.0.0.1/32 cert
  hostssl all chartroom    127.0.0.1/32 scram-sha-256
`;

beforeAll(async () => {
  certificates = makeCertificates(process.getuid?.() === 0 ? UNPRIVILEGED : undefined);
  const { folder, ca, sign } = certificates;
  own = sign("server", "subjectAltName=IP:127.0.0.1");
  const access = join(folder, "access.conf");
  writeFileSync(access, ACCESS);
  cluster = await startPostgres("embedded", [
    `hba_file=${access}`,
    `ssl_ca_file=${ca}`,
    `ssl_cert_file=${own.cert}`,
    `ssl_key_file=${own.key}`,
  ]);
  await setTls("on");
  await onCluster(
    `${cluster.url}/postgres`,
    `create role chartroom login password '${PASSWORD.replace("'", "''")}'`,
  );
  url = (await emptyDatabase(cluster, "owner chartroom")).replace("postgres@", "chartroom@");
  const dataDir = temporaryFolder();
  keyFile = join(dataDir, "key.json");
  passwordFile = join(dataDir, "password");
  writeFileSync(passwordFile, `${PASSWORD}\n`);
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
  if (certificates) rmSync(certificates.folder, { recursive: true });
});

/** Switches TLS of the database's server, and waits until new connections find it so. */
async function setTls(state: "on" | "off"): Promise<void> {
  const admin = `${cluster.url}/postgres`;
  await onCluster(admin, `alter system set ssl = ${state}`);
  await onCluster(admin, "select pg_reload_conf()");
  await until(
    async () => (await onCluster(admin, "show ssl")).rows[0].ssl,
    (found) => found === state,
  );
}

/** Runs a command that reads the database. @returns "" when it succeeds, or what it says */
async function problemWith(address: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const args = ["organization", "list", "--data-dir", temporaryFolder(), "--key-file", keyFile];
  const { code, stdout, stderr } = await runCommand(args, {
    CHARTROOM_DATABASE_URL: address,
    ...(env.PGPASSWORD === undefined && { CHARTROOM_DATABASE_PASSWORD_FILE: passwordFile }),
    ...env,
  });
  expect(code).toBe(stderr === "" ? 0 : 1);
  expect(stderr).not.toContain(PASSWORD);
  if (code === 0) expect(stdout).toContain("My organization");
  return stderr;
}

const named = (address: string) => address.replace("127.0.0.1", "localhost");

test("a server with sslmode=verify-full has TLS on every connection", async () => {
  const server = await startServer({
    dataDir: temporaryFolder(),
    args: ["--key-file", keyFile, "--database-password-file", passwordFile],
    env: { CHARTROOM_DATABASE_URL: `${url}?sslmode=verify-full&sslrootcert=${certificates.ca}` },
  });
  await until(
    () => server.output(),
    (text) => text.includes("cr_pat_"),
  );
  const connections = () =>
    onCluster(
      `${cluster.url}/postgres`,
      "select application_name as role, ssl from pg_stat_activity join pg_stat_ssl using (pid) where usename = 'chartroom'",
    ).then(({ rows }) => rows as readonly { readonly role: string; readonly ssl: boolean }[]);
  const found = await until(connections, (rows) => new Set(rows.map(({ role }) => role)).size === 3);
  expect(new Set(found.map(({ role }) => role))).toEqual(
    new Set(["chartroom read", "chartroom write", "chartroom session"]),
  );
  expect(found.filter(({ ssl }) => !ssl)).toEqual([]);
  await server.stop();
});

describe("sslmode", () => {
  const root = (file: string) => `sslrootcert=${file}`;
  const ca = () => root(certificates.ca);
  const other = () => root(certificates.otherCa);

  test.each<readonly [string, () => string]>([
    ["require, no matter who signed", () => `${url}?sslmode=require`],
    ["require with the CA, whatever the name", () => `${named(url)}?sslmode=require&${ca()}`],
    ["verify-ca with the CA", () => `${url}?sslmode=verify-ca&${ca()}`],
    ["verify-ca with the CA, whatever the name", () => `${named(url)}?sslmode=verify-ca&${ca()}`],
    ["verify-full with the CA and the name", () => `${url}?sslmode=verify-full&${ca()}`],
  ])("%s connects", async (_, address) => {
    expect(await problemWith(address())).toBe("");
  });

  test.each<readonly [string, () => string, string]>([
    ["require with another CA", () => `${url}?sslmode=require&${other()}`, CERTIFICATE],
    ["verify-ca with another CA", () => `${url}?sslmode=verify-ca&${other()}`, CERTIFICATE],
    ["verify-full with another CA", () => `${url}?sslmode=verify-full&${other()}`, CERTIFICATE],
    ["verify-full with public CAs", () => `${url}?sslmode=verify-full`, CERTIFICATE],
    [
      "verify-full under another name",
      () => `${named(url)}?sslmode=verify-full&${ca()}`,
      "Hostname/IP does not match certificate's altnames",
    ],
    ["disable where TLS is required", () => `${url}?sslmode=disable`, "no encryption"],
    ["no sslmode where TLS is required", () => url, "no encryption"],
  ])("%s does not connect, and says why", async (_, address, reason) => {
    const problem = await problemWith(address());
    expect(problem).toMatch(/^chartroom: the database \w+ at [\w.]+:\d+ cannot be used: .*/);
    expect(problem).toContain(reason);
  });

  test("require does not connect without TLS, and disable does", async () => {
    const plain = `${url.replace("chartroom@", "postgres@")}`;
    await setTls("off");
    for (const mode of ["require", "verify-ca", "verify-full"])
      expect(await problemWith(`${plain}?sslmode=${mode}&${ca()}`)).toMatch(
        /cannot be used: the database speaks no TLS, which the sslmode of --database-url asks for: set ssl = on /,
      );
    expect(await problemWith(`${plain}?sslmode=disable`)).toBe("");
    await setTls("on");
  });
});

describe("a user", () => {
  test("with a certificate needs no password", async () => {
    await onCluster(`${cluster.url}/postgres`, "create role crew login in role chartroom");
    const crew = url.replace("chartroom@", "crew@");
    const { cert, key } = certificates.sign("crew");
    const address = `${crew}?sslmode=verify-full&sslrootcert=${certificates.ca}`;
    expect(await problemWith(`${address}&sslcert=${cert}&sslkey=${key}`)).toBe("");
    expect(await problemWith(address)).toContain("the database refuses the user or the password");
    const stranger = certificates.sign("stranger");
    expect(await problemWith(`${address}&sslcert=${stranger.cert}&sslkey=${stranger.key}`)).toContain(
      "the database refuses the user or the password",
    );
  });

  test("has the password of the file, or of PGPASSWORD, and no other", async () => {
    const address = `${url}?sslmode=verify-full&sslrootcert=${certificates.ca}`;
    expect(await problemWith(address, { PGPASSWORD: PASSWORD })).toBe("");
    expect(await problemWith(address, { PGPASSWORD: "" })).toContain(
      "the database asks for a password: use --database-password-file or PGPASSWORD",
    );
    expect(await problemWith(address, { PGPASSWORD: "wrong" })).toContain(
      "the database refuses the user or the password",
    );
  });
});

test("a certificate that signs itself, as Debian's does, is one that verify-full does not accept", async () => {
  const { folder } = certificates;
  writeFileSync(own.cert, readFileSync(join(folder, "other.crt")));
  writeFileSync(own.key, readFileSync(join(folder, "other.key")));
  await onCluster(`${cluster.url}/postgres`, "select pg_reload_conf()");
  const address = `${url}?sslmode=verify-full`;
  const isOther = (problem: string) => !problem.includes("unable to verify the first certificate");
  expect(await until(() => problemWith(address), isOther)).toContain(CERTIFICATE);
});
