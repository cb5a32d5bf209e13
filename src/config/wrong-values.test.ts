import { describe, expect, test } from "@jest/globals";
import { ConfigError, readConfig, SETTINGS, type SettingName } from "./config.ts";

/** Returns every problem of the settings; empty when they are usable. */
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

describe("a value that cannot be used", () => {
  const WRONG: readonly [SettingName, string][] = [
    ["host", ""],
    ["host", " "],
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
    ...["", "0", "1048577"].map((text) => ["logFileSize", text] as [SettingName, string]),
    ...["", "0", "1001"].map((text) => ["logFiles", text] as [SettingName, string]),
    ...["", "-0.1", "1.01", "1e-3", "all"].map((text) => ["traceRatio", text] as [SettingName, string]),
    ...["", "0", "33"].map((text) => ["localRunnerSlots", text] as [SettingName, string]),
    ...["", "0", "10001"].map((text) => ["localRunnerAgentSlots", text] as [SettingName, string]),
    ...["https://git.example.org", "git.example.org/", "user@git.example.org", "git .example.org", "*"].map(
      (text) => ["plainHttpHosts", text] as [SettingName, string],
    ),
    ...["./devcontainer", "node_modules/.bin/devcontainer"].map(
      (text) => ["isolationDevcontainerCli", text] as [SettingName, string],
    ),
    ["isolationRepositoryImages", "a/*/b"],
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

  test("is reported with the range that is allowed and what was given", () => {
    expect(problems({ port: "70000" })).toEqual([
      '--port must be a whole number from 0 to 65535, not "70000"',
    ]);
    expect(problems({ logLevel: "loud" })).toEqual([
      '--log-level must be one of debug, info, warn, error, silent, not "loud"',
    ]);
  });

  test("is not repeated when it is a URL with a user or a query, which may hold a secret", () => {
    for (const baseUrl of [
      "https://user:word@a.example",
      "https://user:wo/rd@a.example",
      "https://a.example?key=word",
    ])
      expect(problems({ baseUrl })).toEqual([
        "--base-url must be an http or https URL without query, fragment or user",
      ]);
    expect(problems({ baseUrl: "a.example" })[0]).toContain(', not "a.example"');
  });

  test("is reported together with every other one", () => {
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
