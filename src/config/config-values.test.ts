import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { keyFileOf, readConfig } from "./config.ts";

describe("TLS", () => {
  test.each<[string, Parameters<typeof readConfig>]>([
    ["a certificate without a key", [{ tlsCert: "cert.pem" }, {}]],
    ["a key without a certificate", [{ tlsKey: "key.pem" }, {}]],
    ["a variable for one and nothing for the other", [{}, { CHARTROOM_TLS_CERT: "cert.pem" }]],
    [
      "a flag that empties one of two variables",
      [{ tlsKey: "" }, { CHARTROOM_TLS_CERT: "c", CHARTROOM_TLS_KEY: "k" }],
    ],
  ])("is refused with %s", (_, [flags, env]) => {
    expect(() => readConfig(flags, env)).toThrow(
      /^the settings cannot be used:\n {2}--tls-cert and --tls-key go together: set both, or neither$/,
    );
  });

  test("takes one from a flag and the other from a variable", () => {
    const config = readConfig({ tlsCert: "cert.pem" }, { CHARTROOM_TLS_KEY: "key.pem" });
    expect([config.tlsCert, config.tlsKey]).toEqual(["cert.pem", "key.pem"]);
  });
});

describe("the base URL", () => {
  test.each([
    ["https://chartroom.example.org/", "https://chartroom.example.org"],
    ["https://chartroom.example.org///", "https://chartroom.example.org"],
    ["https://chartroom.example.org/rooms/", "https://chartroom.example.org/rooms"],
    ["https://chartroom.example.org:443/rooms", "https://chartroom.example.org/rooms"],
    ["HTTPS://Chartroom.Example.org", "https://chartroom.example.org"],
    [" https://chartroom.example.org ", "https://chartroom.example.org"],
    ["https:chartroom.example.org", "https://chartroom.example.org"],
    ["https://chartroom.example.org/?", "https://chartroom.example.org"],
    ["http://[2001:db8::7]:8080", "http://[2001:db8::7]:8080"],
    ["", ""],
  ])("given as %j can have a path put behind it: %s", (text, url) => {
    expect(readConfig({ baseUrl: text }, {}).baseUrl).toBe(url);
  });
});

test.each([
  ["CHARTROOM_PROT", "did you mean CHARTROOM_PORT?"],
  ["CHARTROOM_DATADIR", "did you mean CHARTROOM_DATA_DIR?"],
  ["CHARTROOM_port", "did you mean CHARTROOM_PORT?"],
  ["CHARTROOM_TRUSTED_PROXY", "see chartroom --help"],
  ["CHARTROOM_", "see chartroom --help"],
])("the variable %s is no setting: %s", (name, advice) => {
  expect(() => readConfig({}, { [name]: "x" })).toThrow(`  ${name} is no setting; ${advice}`);
});

test("a flag without an argument is on when it is given", () => {
  expect(readConfig({ allowUnknownFields: true }, {}).allowUnknownFields).toBe(true);
});

describe("the key file", () => {
  test("is in the data folder unless it is set", () => {
    expect(keyFileOf({ keyFile: "", dataDir: "some/data" })).toBe(join("some/data", "key.json"));
    expect(keyFileOf({ keyFile: "/etc/chartroom.json", dataDir: "some/data" })).toBe("/etc/chartroom.json");
  });
});
