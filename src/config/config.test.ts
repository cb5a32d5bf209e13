import { describe, expect, test } from "@jest/globals";
import { readConfig, SETTINGS, type SettingName } from "./config.ts";

const NAMES = Object.keys(SETTINGS) as SettingName[];

const two = (...values: [text: string, value: unknown][]) => values;
const BOOLEANS = two(["true", true], ["false", false]);
const SMALL = two(["1", 1], ["3600", 3_600]);
const SECONDS = two(["1", 1], ["86400", 86_400]);
const RATES = two(["1", 1], ["1000000000", 1_000_000_000]);
const COUNTS = two(["1", 1], ["1000000", 1_000_000]);

/** Settings that differ from the default, two of each. */
const VALUES: Readonly<Record<SettingName, readonly [text: string, value: unknown][]>> = {
  host: two(["0.0.0.0", "0.0.0.0"], ["::1", "::1"]),
  port: two(["0", 0], ["65535", 65_535]),
  dataDir: two(["/srv/data", "/srv/data"], ["data here", "data here"]),
  firstTokenFile: two(["token", "token"], ["/run/chartroom/token", "/run/chartroom/token"]),
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
  keyFile: two(["/etc/key.json", "/etc/key.json"], ["key.json", "key.json"]),
  tlsCert: two(["cert.pem", "cert.pem"], ["/etc/cert.pem", "/etc/cert.pem"]),
  tlsKey: two(["key.pem", "key.pem"], ["/etc/key.pem", "/etc/key.pem"]),
  signInProviders: two(["providers.json", "providers.json"], ["/etc/providers.json", "/etc/providers.json"]),
  machineIssuers: two(["issuers.json", "issuers.json"], ["/etc/issuers.json", "/etc/issuers.json"]),
  metricsAddress: two(["none", undefined], ["[::1]:0", { host: "::1", port: 0 }]),
  otlpEndpoint: two(
    ["http://127.0.0.1:4318", "http://127.0.0.1:4318"],
    ["https://telemetry.example.org/", "https://telemetry.example.org"],
  ),
  otlpTracesEndpoint: two(
    ["http://127.0.0.1:4318", "http://127.0.0.1:4318"],
    ["https://traces.example.org/otlp/", "https://traces.example.org/otlp"],
  ),
  otlpHeadersFile: two(["headers", "headers"], ["/etc/headers", "/etc/headers"]),
  traceRatio: two(["0.25", 0.25], ["0", 0]),
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
  diskFloor: two(["0", 0], ["1073741824", 1_073_741_824]),
  backupFolder: two(["copies", "copies"], ["/var/backups/chartroom", "/var/backups/chartroom"]),
  allowOrganizationCreation: BOOLEANS,
  countLimit: COUNTS,
  streamsPerToken: COUNTS,
  rateLimits: two(["on", "on"], ["off", "off"]),
  callsPerToken: RATES,
  callsPerAccount: RATES,
  callsPerServer: two(["0", 0], ["1000000000", 1_000_000_000]),
  refusalsPerAddress: RATES,
  connectionsPerAddress: two(["0", 0], ["1000000", 1_000_000]),
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
  agentSlotTime: two(["0", 0], ["86400", 86_400]),
  runnerWait: two(["1", 1], ["86400", 86_400]),
  leaseDuration: two(["5", 5], ["3600", 3_600]),
  executionRetention: two(["0", 0], ["3650", 3_650]),
  executionCount: two(["0", 0], ["100000", 100_000]),
  agentExecutionRetention: two(["0", 0], ["3650", 3_650]),
  agentExecutionCount: two(["0", 0], ["100000", 100_000]),
  triggerEntryRetention: two(["0", 0], ["3650", 3_650]),
  triggerEntryCount: two(["0", 0], ["100000", 100_000]),
  eventRetention: two(["1", 1], ["3650", 3_650]),
  eventCount: two(["0", 0], ["100000", 100_000]),
  auditFile: two(["audit.jsonl", "audit.jsonl"], [" /var/log/audit.jsonl ", "/var/log/audit.jsonl"]),
  auditFileSize: two(["1", 1], ["1048576", 1_048_576]),
  auditFileCount: two(["0", 0], ["100000", 100_000]),
  auditOtlpEndpoint: two(
    ["http://127.0.0.1:4318", "http://127.0.0.1:4318"],
    ["https://telemetry.example.org/", "https://telemetry.example.org"],
  ),
  auditRetention: two(["0", 0], ["90", 90], ["3650", 3_650]),
  localRunner: BOOLEANS,
  sampleData: BOOLEANS,
  localRunnerWorkDir: two(["/srv/work", "/srv/work"], ["work", "work"]),
  localRunnerSlots: two(["1", 1], ["32", 32]),
  localRunnerAgentSlots: two(["1", 1], ["10000", 10_000]),
  repositoryCache: two(["on", "on"], ["off", "off"]),
  repositoryCacheSize: two(["1", 1], ["1073741824", 1_073_741_824]),
  isolation: two(["bubblewrap", "bubblewrap"], ["none", "none"]),
  allowApiAgents: BOOLEANS,
  isolationRead: two(["/opt/agent", ["/opt/agent"]], [" /opt/a b::/srv/tools:", ["/opt/a b", "/srv/tools"]]),
  isolationImage: two(["a", "a"], ["registry.example.org/base:1", "registry.example.org/base:1"]),
  isolationRepositoryImages: two(["*", ["*"]], [" a/b:1 ,c.example/*,", ["a/b:1", "c.example/*"]]),
  isolationDevcontainerCli: two(["devcontainer", "devcontainer"], ["/opt/devcontainer", "/opt/devcontainer"]),
  isolationBuiltImages: two(["1", 1], ["10000", 10_000]),
  isolationUser: two(["1", 1], ["4294967293", 4_294_967_293]),
  egressHosts: two(["hosts", "hosts"], ["/etc/chartroom/hosts", "/etc/chartroom/hosts"]),
  egressPrivate: two(
    ["10.0.0.7", [{ address: "10.0.0.7", prefix: 32, family: "ipv4" }]],
    ["fd00::/8", [{ address: "fd00::", prefix: 8, family: "ipv6" }]],
  ),
  isolationProcesses: two(["16", 16], ["1000000", 1_000_000]),
  isolationMemory: two(["1", 1], ["65536", 65_536]),
  isolationCpus: two(["1", 1], ["1024", 1_024]),
  isolationCgroup: two(["none", "none"], ["/sys/fs/cgroup/work", "/sys/fs/cgroup/work"]),
  isolationDisk: two(["1", 1], ["65536", 65_536]),
  isolationTmp: two(["1", 1], ["65536", 65_536]),
  isolationFreeDisk: two(["0", 0], ["65536", 65_536]),
  allowPrivateRemotes: BOOLEANS,
  allowFileRemotes: BOOLEANS,
  plainHttpHosts: [
    ["git.example.org", new Set(["git.example.org"])],
    [" Git.example.org:8080,,127.0.0.1:3000 ", new Set(["git.example.org:8080", "127.0.0.1:3000"])],
  ],
  webhookPrivateHosts: two(["hooks.local", new Set(["hooks.local"])], ["A:81,", new Set(["a:81"])]),
  sshKeyFile: two(["/etc/chartroom/id_ed25519", "/etc/chartroom/id_ed25519"], ["id", "id"]),
  logFile: two(["server.log", "server.log"], ["/var/log/chartroom.log", "/var/log/chartroom.log"]),
  logFileSize: two(["1", 1], ["1048576", 1_048_576]),
  logFiles: two(["1", 1], ["1000", 1_000]),
  logLevel: [
    ["debug", "debug"],
    ["silent", "silent"],
  ],
};

/** TLS needs both of its settings, so each is always given together with the other. */
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
      metricsAddress: { host: "127.0.0.1", port: 9464 },
      signInProviders: "",
      machineIssuers: "",
      otlpEndpoint: "",
      otlpTracesEndpoint: "",
      otlpHeadersFile: "",
      traceRatio: 1,
      dataDir: "./data",
      firstTokenFile: "",
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
      agentSlotTime: 300,
      runnerWait: 86_400,
      diskFloor: 128,
      backupFolder: "",
      rateLimits: "on",
      callsPerToken: 120_000,
      callsPerAccount: 240_000,
      callsPerServer: 600_000,
      refusalsPerAddress: 60_000,
      connectionsPerAddress: 2_048,
      executionRetention: 0,
      executionCount: 0,
      agentExecutionRetention: 0,
      agentExecutionCount: 0,
      triggerEntryRetention: 30,
      triggerEntryCount: 0,
      eventRetention: 30,
      eventCount: 0,
      auditFile: "",
      auditFileSize: 100,
      auditFileCount: 0,
      auditOtlpEndpoint: "",
      auditRetention: 0,
      localRunner: false,
      sampleData: false,
      localRunnerWorkDir: "",
      localRunnerSlots: 4,
      localRunnerAgentSlots: 8,
      repositoryCache: "on",
      repositoryCacheSize: 10_240,
      isolation: "auto",
      allowApiAgents: false,
      isolationRead: [],
      isolationImage: "",
      isolationRepositoryImages: [],
      isolationDevcontainerCli: "",
      isolationBuiltImages: 20,
      isolationUser: 64_913,
      egressHosts: "",
      egressPrivate: [],
      isolationProcesses: 4_096,
      isolationMemory: 0,
      isolationCpus: 0,
      isolationCgroup: "auto",
      isolationDisk: 51_200,
      isolationTmp: 10_240,
      isolationFreeDisk: 512,
      allowPrivateRemotes: false,
      allowFileRemotes: false,
      plainHttpHosts: new Set(),
      webhookPrivateHosts: new Set(),
      sshKeyFile: "",
      logLevel: "info",
      logFile: "",
      logFileSize: 64,
      logFiles: 5,
    });
  });

  test("variables of other programs mean nothing", () => {
    const others = { PATH: "/bin", HOST: "x", PORT: "x", XCHARTROOM_PORT: "x", chartroom_port: "x" };
    expect(readConfig({}, others)).toEqual(readConfig({}, {}));
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
