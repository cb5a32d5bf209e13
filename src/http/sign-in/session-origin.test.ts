import { expect, test } from "@jest/globals";
import { sessionOriginOf } from "./session-origin.ts";

test.each([
  ["http://127.0.0.1:8080", "http://chartroom.localhost:8080", true],
  ["http://127.9.9.9:8080", "http://chartroom.localhost:8080", true],
  ["http://[::1]:8080", "http://chartroom.localhost:8080", true],
  ["http://localhost", "http://chartroom.localhost", true],
  ["https://chartroom.example.org", "https://chartroom.example.org", true],
  ["https://example.org:8443/chartroom", "https://example.org:8443", true],
  ["http://chartroom.example.org", "http://chartroom.example.org", false],
  ["http://10.0.0.1:8080", "http://10.0.0.1:8080", false],
  ["http://127.0.0.1.example.org", "http://127.0.0.1.example.org", false],
])("a server at %s has sessions at %s", (baseUrl, origin, isSafe) => {
  expect(sessionOriginOf(baseUrl)).toMatchObject({ origin, isSafe, host: new URL(origin).host });
});
