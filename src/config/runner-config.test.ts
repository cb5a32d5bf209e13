import { describe, expect, test } from "@jest/globals";
import { RUNNER_SETTINGS, readConfig, readRunnerConfig } from "./config.ts";

describe("the settings of a runner", () => {
  test("have their defaults without flags and variables", () => {
    expect(readRunnerConfig({}, {})).toEqual({
      server: "http://127.0.0.1:8080",
      stateDir: "",
      exchangeTokenFile: "",
      caFile: "",
      slots: 4,
      agentSlots: 8,
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
      sshKeyFile: "",
      logLevel: "info",
    });
  });

  test.each(Object.entries(RUNNER_SETTINGS))(
    "are named alike in the code, as a flag and as a variable: %s",
    (name, { flag, env }) => {
      const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      expect([flag, env]).toEqual([`--${words}`, `CHARTROOM_${words.replaceAll("-", "_").toUpperCase()}`]);
    },
  );

  test("are refused together when they cannot be used", () => {
    const flags = {
      server: "",
      slots: "33",
      agentSlots: "0",
      repositoryCache: "true",
      repositoryCacheSize: "0",
    };
    const all = [
      "--server must not be empty",
      '--slots must be a whole number from 1 to 32, not "33"',
      '--agent-slots must be a whole number from 1 to 10000, not "0"',
      '--repository-cache must be one of on, off, not "true"',
      '--repository-cache-size must be a whole number from 1 to 1073741824, not "0"',
      "CHARTROOM_SERVR is no setting; did you mean CHARTROOM_SERVER?",
    ];
    expect(() => readRunnerConfig(flags, { CHARTROOM_SERVR: "x" })).toThrow(all.join("\n  "));
  });

  test("may be set in the environment of a server, and those of a server in a runner's", () => {
    const env = { CHARTROOM_SERVER: "https://chartroom.example.org", CHARTROOM_EXCHANGE_TOKEN: "x" };
    expect(readConfig({}, env).port).toBe(8_080);
    expect(readRunnerConfig({}, { CHARTROOM_PORT: "80" }).slots).toBe(4);
  });
});

test("what a runner tells the commands of an action keeps none of them from starting a server", () => {
  const suffixes = [
    "URL",
    "ENVIRONMENT_ID",
    "ENVIRONMENT_TOKEN",
    "ACTION_ID",
    "OUTPUTS",
    "PARAMETER_branch_name",
  ];
  const env = Object.fromEntries(suffixes.map((name) => [`CHARTROOM_${name}`, "x"]));
  expect(readConfig({}, env).port).toBe(8_080);
  expect(() => readConfig({}, { CHARTROOM_URLS: "x" })).toThrow("CHARTROOM_URLS is no setting");
});
