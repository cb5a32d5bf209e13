import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { sessionOriginOf } from "../sign-in/session-origin.ts";
import { createConsoleDispatch } from "./console.ts";

const SCRIPT = "console.log('the console')";
const PAGE = '<!doctype html><meta property="csp-nonce" nonce="__NONCE__">';

let folder: string;
let server: Server;
let url: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "chartroom-console-"));
  const dispatch = createConsoleDispatch({
    folder: join(folder, "dist"),
    sessionOrigin: () => sessionOriginOf("https://chartroom.example.org"),
    report: (error) => {
      throw error;
    },
  });
  server = createServer((req, res) => void dispatch(req, res, { requestId: "1", operation: "none" }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

function build(page = PAGE): void {
  mkdirSync(join(folder, "dist/assets"), { recursive: true });
  writeFileSync(join(folder, "dist/assets/index-a1.js"), SCRIPT);
  writeFileSync(join(folder, "dist/assets/index-a1.js.gz"), gzipSync(SCRIPT));
  writeFileSync(join(folder, "dist/assets/icon-b2.svg"), "<svg/>");
  writeFileSync(join(folder, "dist/assets/notes.txt"), "no file of the page");
  writeFileSync(join(folder, "dist/index.html"), page);
}

test("without a build, each page says how to build; once it was built, it is there without a restart", async () => {
  for (const path of ["/", "/agents/x"]) {
    const res = await fetch(url + path);
    expect(res.status).toBe(200);
    expect(res.headers.get("cache-control")).toBe("no-store");
    expect(await res.text()).toContain("npm ci &amp;&amp; npm run build");
  }
  expect((await fetch(`${url}/assets/index-a1.js`)).status).toBe(404);
  build();
  const page = await (await fetch(url)).text();
  expect(page).toMatch(/nonce="[\w-]{22}"/);
});

test("a page has the nonce of its policy, and each answer another", async () => {
  build();
  const answers = await Promise.all([1, 2].map(() => fetch(`${url}/workflows`)));
  const nonces = await Promise.all(
    answers.map(async (res) => {
      const nonce = /nonce="([\w-]{22})"/.exec(await res.text())?.[1];
      expect(res.headers.get("content-security-policy")).toContain(`'nonce-${nonce}'`);
      return nonce;
    }),
  );
  expect(nonces[0]).not.toBe(nonces[1]);
});

test("a file never changes under its name, and is sent packed to clients that take that", async () => {
  build();
  for (const encoding of ["gzip", "identity"]) {
    const res = await fetch(`${url}/assets/index-a1.js`, { headers: { "accept-encoding": encoding } });
    expect(await res.text()).toBe(SCRIPT);
    expect([res.headers.get("content-encoding"), res.headers.get("vary")]).toEqual([
      encoding === "gzip" ? "gzip" : null,
      "Accept-Encoding",
    ]);
    expect(res.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(res.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  }
  const icon = await fetch(`${url}/assets/icon-b2.svg`);
  expect([icon.status, icon.headers.get("content-type"), icon.headers.get("content-encoding")]).toEqual([
    200,
    "image/svg+xml",
    null,
  ]);
  for (const name of ["notes.txt", "index-a1.js.gz", "index.html", "../index.html", ""]) {
    expect([name, (await fetch(`${url}/assets/${encodeURIComponent(name)}`)).status]).not.toEqual([
      name,
      200,
    ]);
  }
});

test("a console that is built again stays as it was until the next start: its pages and files belong together", async () => {
  build();
  const before = await (await fetch(url)).text();
  build("<!doctype html>another");
  expect((await (await fetch(url)).text()).length).toBe(before.length);
});
