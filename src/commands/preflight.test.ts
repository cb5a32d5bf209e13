import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { readConfig } from "../config/config.ts";
import { checkServeSettings, isLoopback } from "./preflight.ts";

const check = (host: string, baseUrl = "") => checkServeSettings(readConfig({ host, baseUrl }, {}));

describe("a host", () => {
  test.each(["127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "localhost", "LOCALHOST"])(
    "that only this machine reaches needs no base URL: %s",
    (host) => {
      expect(isLoopback(host)).toBe(true);
      expect(() => check(host)).not.toThrow();
    },
  );

  test.each(["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "128.0.0.1", "chartroom.example.org"])(
    "that other machines reach needs one: %s",
    (host) => {
      expect(isLoopback(host)).toBe(false);
      expect(() => check(host)).toThrow(
        `--host ${host} is reached from other machines, so --base-url must say under which URL they reach it`,
      );
      expect(() => check(host, "https://chartroom.example.org")).not.toThrow();
    },
  );
});

test("files of a certificate and its key that are no PEM files are named", () => {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-preflight-"));
  try {
    const [tlsCert, tlsKey] = [join(folder, "cert"), join(folder, "key")];
    writeFileSync(tlsCert, "a certificate\n");
    writeFileSync(tlsKey, "");
    const text = (flag: string, file: string) =>
      `${flag} ${file} is no PEM file: it has no line that begins with -----BEGIN`;
    expect(() => checkServeSettings(readConfig({ tlsCert, tlsKey }, {}))).toThrow(
      new RegExp(`${text("--tls-cert", tlsCert)}\n +${text("--tls-key", tlsKey)}$`),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe("an audit file", () => {
  const checkFile = (auditFile: string) => checkServeSettings(readConfig({ auditFile }, {}));

  test("may be there or not, in a folder that is", () => {
    const folder = mkdtempSync(join(tmpdir(), "chartroom-preflight-"));
    try {
      const file = join(folder, "audit.jsonl");
      expect(() => checkFile(file)).not.toThrow();
      writeFileSync(file, "");
      expect(() => checkFile(file)).not.toThrow();
      expect(() => checkFile(join(folder, "other", "audit.jsonl"))).toThrow(
        /--audit-file .* cannot be written/,
      );
      expect(() => checkFile(folder)).toThrow(`--audit-file ${folder} is no file`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
