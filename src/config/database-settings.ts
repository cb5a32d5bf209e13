import { readFileSync } from "node:fs";
import { integer } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The settings of the database server, for installations that need more than one machine. */
export const DATABASE_SETTINGS = {
  databaseUrl: setting({
    flag: "--database-url",
    argument: "url",
    env: "CHARTROOM_DATABASE_URL",
    default: "",
    help: "PostgreSQL database, for several servers, as postgres://user@host:5432/database?sslmode=verify-full; by default, SQLite in the data folder",
    read: databaseUrl,
  }),
  databasePasswordFile: setting({
    flag: "--database-password-file",
    argument: "file",
    env: "CHARTROOM_DATABASE_PASSWORD_FILE",
    default: "",
    help: "file with the password of the database user; by default, PGPASSWORD is used",
    read: (text: string) => text,
  }),
  databaseConnections: setting({
    flag: "--database-connections",
    argument: "number",
    env: "CHARTROOM_DATABASE_CONNECTIONS",
    default: "8",
    help: "database connections of this server for reads, and the same number for writes; one more receives notifications",
    read: integer(1, 500),
  }),
} as const;

/** TLS modes of the URL, as libpq names them. Its "allow" and "prefer" are excluded: they would hide a lack of TLS. */
const TLS_MODES = ["disable", "require", "verify-ca", "verify-full"];

/** Allowed URL parameters. The driver accepts others that would override the settings of its connections. */
const PARAMETERS = ["sslmode", "sslrootcert", "sslcert", "sslkey", "host"];

/** Reads the URL of a database. @throws Error that completes "--database-url ..." and names no password */
export function databaseUrl(text: string): string {
  if (text === "") return "";
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2)
    throw new Error("must be a URL such as postgres://user@host:5432/database");
  if (url.password !== "")
    throw new Error(
      "must not hold a password, which other users of this machine would see: use --database-password-file or PGPASSWORD",
    );
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    throw new Error(`has the parameter "${unknown}": it can have ${PARAMETERS.join(", ")}`);
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && !TLS_MODES.includes(mode))
    throw new Error(`has the sslmode "${mode}": it can be ${TLS_MODES.join(", ")}`);
  if (mode === "verify-ca" && !url.searchParams.has("sslrootcert"))
    throw new Error(
      "has the sslmode verify-ca without a sslrootcert: name the file of the CA, or use verify-full",
    );
  // Makes the driver read the modes as libpq does: "require" does not verify, "verify-ca" does not check the name.
  if (mode !== null) url.searchParams.set("uselibpqcompat", "true");
  return url.href;
}

/** Returns the URL as it was configured, without the parameter that {@link databaseUrl} adds. */
export const givenDatabaseUrl = (url: string): string => url.replace(/&uselibpqcompat=true$/, "");

/** Returns the database of a URL in words for the operator. */
export function databaseAt(text: string): string {
  const { host, pathname, searchParams } = new URL(text);
  return `the database ${pathname.slice(1)} at ${searchParams.get("host") ?? host}`;
}

/** Returns the password in the file, without its line ending. @throws Error with a sentence for the operator */
export function databasePassword(file: string): string | undefined {
  if (file === "") return undefined;
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new Error(`--database-password-file ${file} cannot be read: ${(error as Error).message}`);
  }
}
