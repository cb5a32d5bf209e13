import { describe, expect, test } from "@jest/globals";
import { ConfigError, readConfig, SETTINGS, type SettingName } from "./config.ts";

const NAMES = Object.keys(SETTINGS) as SettingName[];

/** Every problem that the settings have; none when they can be used. */
function problems(
  flags: Parameters<typeof readConfig>[0],
  env: Parameters<typeof readConfig>[1] = {},
): readonly string[] {
  try {
    readConfig(flags, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

const two = (...values: [text: string, value: unknown][]) => values;
const BOOLEANS = two(["true", true], ["false", false]);
const SMALL = two(["1", 1], ["3600", 3_600]);
const SECONDS = two(["1", 1], ["86400", 86_400]);
const COUNTS = two(["1", 1], ["1000000", 1_000_000]);

/** Settings that differ from the default, two of each. */
const VALUES: Readonly<Record<SettingName, readonly [text: string, value: unknown][]>> = {
  host: two(["0.0.0.0", "0.0.0.0"], ["::1", "::1"]),
  port: two(["0", 0], ["65535", 65_535]),
  dataDir: [
    ["/srv/data", "/srv/data"],
    ["data here", "data here"],
  ],
  databaseUrl: two(
    ["postgres://me@db/one", "postgres://me@db/one"],
    ["postgres://db/one?sslmode=require", "postgres://db/one?sslmode=require&uselibpqcompat=true"],
  ),
  databasePasswordFile: two(["password", "password"], ["/etc/password", "/etc/password"]),
  databaseConnections: two(["1", 1], ["500", 500]),
  baseUrl: [
    ["https://chartroom.example.org", "https://chartroom.example.org"],
    ["http://10.0.0.1:8080", "http://10.0.0.1:8080"],
  ],
  keyFile: [
    ["/etc/key.json", "/etc/key.json"],
    ["key.json", "key.json"],
  ],
  tlsCert: two(["cert.pem", "cert.pem"], ["/etc/cert.pem", "/etc/cert.pem"]),
  tlsKey: two(["key.pem", "key.pem"], ["/etc/key.pem", "/etc/key.pem"]),
  trustedProxies: two(
    ["10.0.0.7", [{ address: "10.0.0.7", prefix: 32, family: "ipv4" }]],
    [
      " 192.168.4.0/24,,fd00::/8, ::1 ,",
      [
        { address: "192.168.4.0", prefix: 24, family: "ipv4" },
        { address: "fd00::", prefix: 8, family: "ipv6" },
        { address: "::1", prefix: 128, family: "ipv6" },
      ],
    ],
  ),
  corsOrigins: [
    ["https://console.example.org", new Set(["https://console.example.org"])],
    ["http://localhost:3000, https://a.example ,", new Set(["http://localhost:3000", "https://a.example"])],
  ],
  allowUnknownFields: BOOLEANS,
  organizationQuota: two(["0", 0], ["1", 1]),
  allowOrganizationCreation: BOOLEANS,
  countLimit: COUNTS,
  streamsPerToken: COUNTS,
  streamsPerOrganization: COUNTS,
  streams: COUNTS,
  maxTimeout: SECONDS,
  pageBytes: SMALL,
  outputPerConnection: SMALL,
  outputPerCaller: SMALL,
  outputTotal: SMALL,
  slowReaderTimeout: SMALL,
  callerBodyBytes: [
    ["128", 128],
    ["4096", 4096],
  ],
  bodyBytes: [
    ["128", 128],
    ["65536", 65_536],
  ],
  fastPath: [
    ["off", "off"],
    ["on", "on"],
  ],
  popularityInterval: SECONDS,
  removalInterval: SECONDS,
  leaseDuration: [
    ["5", 5],
    ["3600", 3_600],
  ],
  eventRetention: [
    ["1", 1],
    ["3650", 3_650],
  ],
  localRunner: BOOLEANS,
  localRunnerWorkDir: [
    ["/srv/work", "/srv/work"],
    ["work", "work"],
  ],
  localRunnerSlots: [
    ["1", 1],
    ["32", 32],
  ],
  localRunnerAgentSlots: [
    ["1", 1],
    ["10000", 10_000],
  ],
  allowPrivateRemotes: BOOLEANS,
  allowFileRemotes: BOOLEANS,
  plainHttpHosts: [
    ["git.example.org", new Set(["git.example.org"])],
    [" Git.example.org:8080,,127.0.0.1:3000 ", new Set(["git.example.org:8080", "127.0.0.1:3000"])],
  ],
  sshKeyFile: [
    ["/etc/chartroom/id_ed25519", "/etc/chartroom/id_ed25519"],
    ["id", "id"],
  ],
  logLevel: [
    ["debug", "debug"],
    ["silent", "silent"],
  ],
};

/** TLS takes two settings together, so the other one is always given with it. */
const COMPANION: Partial<Record<SettingName, SettingName>> = { tlsCert: "tlsKey", tlsKey: "tlsCert" };
const companion = (name: SettingName) => {
  const other = COMPANION[name];
  return other ? { [other]: "companion.pem" } : {};
};

describe("without flags and variables", () => {
  test("every setting has its default", () => {
    expect(readConfig({}, {})).toEqual({
      host: "127.0.0.1",
      port: 8080,
      dataDir: "./data",
      databaseUrl: "",
      databasePasswordFile: "",
      databaseConnections: 8,
      baseUrl: "",
      keyFile: "",
      tlsCert: "",
      tlsKey: "",
      trustedProxies: [],
      corsOrigins: new Set(),
      allowUnknownFields: false,
      countLimit: 1_000,
      streamsPerToken: 64,
      streamsPerOrganization: 1_024,
      streams: 8_192,
      pageBytes: 4_194_304,
      maxTimeout: 300,
      organizationQuota: 102_400,
      outputPerConnection: 64,
      outputPerCaller: 128,
      outputTotal: 512,
      slowReaderTimeout: 30,
      callerBodyBytes: 128,
      bodyBytes: 256,
      fastPath: "on",
      popularityInterval: 300,
      removalInterval: 10,
      allowOrganizationCreation: false,
      leaseDuration: 30,
      eventRetention: 30,
      localRunner: false,
      localRunnerWorkDir: "",
      localRunnerSlots: 4,
      localRunnerAgentSlots: 8,
      allowPrivateRemotes: false,
      allowFileRemotes: false,
      plainHttpHosts: new Set(),
      sshKeyFile: "",
      logLevel: "info",
    });
  });

  test("variables of other programs mean nothing", () => {
    expect(
      problems({}, { PATH: "/bin", HOST: "x", PORT: "x", XCHARTROOM_PORT: "x", chartroom_port: "x" }),
    ).toEqual([]);
  });
});

describe.each(NAMES)("the setting %s", (name) => {
  const { flag, env, argument } = SETTINGS[name];
  const [[first, firstValue], [second, secondValue]] = VALUES[name] as [[string, unknown], [string, unknown]];

  test("is read from its flag", () => {
    expect(readConfig({ ...companion(name), [name]: first }, {})[name]).toEqual(firstValue);
  });

  test("is read from its variable", () => {
    expect(readConfig(companion(name), { [env]: first })[name]).toEqual(firstValue);
    expect(readConfig(companion(name), { [env]: second })[name]).toEqual(secondValue);
  });

  test("is taken from the flag when both are given, even when the variable is wrong", () => {
    expect(readConfig({ ...companion(name), [name]: first }, { [env]: second })[name]).toEqual(firstValue);
    expect(readConfig({ ...companion(name), [name]: second }, { [env]: "\0wrong" })[name]).toEqual(
      secondValue,
    );
  });

  test("is named alike in the code, as a flag and as a variable", () => {
    const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    expect(flag).toBe(`--${words}`);
    expect(env).toBe(`CHARTROOM_${words.replaceAll("-", "_").toUpperCase()}`);
    expect(argument === undefined).toBe(SETTINGS[name].default === "false");
  });
});

describe("a value that cannot be used", () => {
  const WRONG: readonly [SettingName, string][] = [
    ["host", ""],
    ["host", " "],
    ["dataDir", ""],
    ...["", " ", "-1", "65536", "80.5", "0x50", "1e3", " 80", "80 ", "eighty", "٨٠", "+80"].map(
      (text) => ["port", text] as [SettingName, string],
    ),
    ...(
      [
        "countLimit",
        "streams",
        "streamsPerToken",
        "streamsPerOrganization",
        "maxTimeout",
        "popularityInterval",
        "removalInterval",
      ] as const
    ).flatMap((name) =>
      ["", "0", "-1", "1.5", "none", SETTINGS[name].argument === "number" ? "1000001" : "86401"].map(
        (text) => [name, text] as [SettingName, string],
      ),
    ),
    ...["", "0", "4194305"].map((text) => ["pageBytes", text] as [SettingName, string]),
    ...["", "0", "4097"].map((text) => ["outputPerConnection", text] as [SettingName, string]),
    ...["", "0", "4097"].map((text) => ["outputPerCaller", text] as [SettingName, string]),
    ...["", "0", "65537"].map((text) => ["outputTotal", text] as [SettingName, string]),
    ...["", "0", "3601"].map((text) => ["slowReaderTimeout", text] as [SettingName, string]),
    ...["", "4", "3601"].map((text) => ["leaseDuration", text] as [SettingName, string]),
    ...["", "0", "33"].map((text) => ["localRunnerSlots", text] as [SettingName, string]),
    ...["", "0", "10001"].map((text) => ["localRunnerAgentSlots", text] as [SettingName, string]),
    ...["https://git.example.org", "git.example.org/", "user@git.example.org", "git .example.org", "*"].map(
      (text) => ["plainHttpHosts", text] as [SettingName, string],
    ),
    ...["", "yes", "1", "TRUE", "false "].map(
      (text) => ["allowUnknownFields", text] as [SettingName, string],
    ),
    ...["", "INFO", "verbose", "trace"].map((text) => ["logLevel", text] as [SettingName, string]),
    ...[
      "chartroom.example.org",
      "ftp://chartroom.example.org",
      "https://",
      "https://chartroom.example.org/?a=b",
      "https://chartroom.example.org/#a",
      "https://user@chartroom.example.org",
      "https://user:word@chartroom.example.org",
      "https://:word@chartroom.example.org",
    ].map((text) => ["baseUrl", text] as [SettingName, string]),
    ...[
      "proxy.example.org",
      "10.0.0",
      "10.0.0.7/",
      "10.0.0.7/33",
      "10.0.0.7/-1",
      "10.0.0.7/8/8",
      "10.0.0.7:80",
      "10.0.0.7 10.0.0.8",
      "010.0.0.7",
      "fd00::/129",
      "[fd00::1]",
      "fe80::1%eth0",
      "0.0.0.0/0",
      "::/0",
      "*",
    ].map((text) => ["trustedProxies", text] as [SettingName, string]),
    ...[
      "console.example.org",
      "https://console.example.org/",
      "https://console.example.org/app",
      "https://console.example.org:443",
      "https://Console.example.org",
      "https://user@console.example.org",
      "*",
      "null",
      "file://",
      "https://a.example https://b.example",
      "https://a.example,b.example",
    ].map((text) => ["corsOrigins", text] as [SettingName, string]),
  ];

  test.each(WRONG)("is refused and named: %s as %j", (name, text) => {
    const { flag, env } = SETTINGS[name];
    expect(problems({ [name]: text })).toEqual([expect.stringMatching(new RegExp(`^${flag} must `))]);
    expect(problems({}, { [env]: text })).toEqual([expect.stringMatching(new RegExp(`^${env} must `))]);
  });

  test("is told with the range that is allowed and what was given", () => {
    expect(problems({ port: "70000" })).toEqual([
      '--port must be a whole number from 0 to 65535, not "70000"',
    ]);
    expect(problems({ logLevel: "loud" })).toEqual([
      '--log-level must be one of debug, info, warn, error, silent, not "loud"',
    ]);
  });

  test("is told together with every other one", () => {
    const flags = { port: "x", countLimit: "0", tlsCert: "cert.pem" };
    const env = { CHARTROOM_HOST: "", CHARTROOM_LOG_LEVEL: "loud", CHARTROOM_PROT: "80", CHARTROOM_: "" };
    const all = problems(flags, env);
    expect(all.map((problem) => problem.split(" ", 1)[0])).toEqual([
      "CHARTROOM_HOST",
      "--port",
      "--count-limit",
      "CHARTROOM_LOG_LEVEL",
      "--tls-cert",
      "CHARTROOM_PROT",
      "CHARTROOM_",
    ]);
    expect(() => readConfig(flags, env)).toThrow(all.join("\n  "));
  });
});
