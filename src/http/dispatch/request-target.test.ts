import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { hasValidTarget } from "./request-target.ts";

const HOSTS = ["a.example.org", "a.example.org:8080", "[::1]:1", "999.999", "a b", "a/b", "a:99999", ""];
const PATHS = ["/api/x", "//a b/x", "//999.999", "/\\a b", "/x//y", "*", "x", "/%zz", "", "http://999.999/x"];

/** Hosts follow one another on purpose: the last one that was found valid is remembered. */
test("a request has a target when its path and its host make up a URL, whatever came before it", () => {
  const path = fc.oneof(fc.constantFrom(...PATHS), fc.string(), fc.webPath());
  const request = fc.record({ host: fc.constantFrom(...HOSTS), url: path });
  const property = fc.property(fc.array(request, { maxLength: 20 }), (requests) => {
    for (const { host, url } of requests) {
      const req = { httpVersion: "1.1", headers: { host }, rawHeaders: ["Host", host], url } as HttpRequest;
      expect([host, url, hasValidTarget(req)]).toEqual([
        host,
        url,
        host !== "" && !/^[^/].*:\/\//s.test(url) && URL.canParse(url, `http://${host}`),
      ]);
    }
  });
  fc.assert(property, replay);
});
