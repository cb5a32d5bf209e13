import { expect, test } from "@jest/globals";
import { networks } from "../../config/setting-values.ts";
import { plainAddress } from "../connection/plain-address.ts";
import { createClientAddress, MAX_PROXIES } from "./client-address.ts";

const PROXIES = "10.0.0.0/8, 127.0.0.1, fd00::/8";
const clientAddress = createClientAddress(networks(PROXIES));

test.each([
  ["no list", "10.0.0.1", undefined, "10.0.0.1"],
  ["an empty list", "10.0.0.1", "", "10.0.0.1"],
  ["the client alone", "10.0.0.1", "203.0.113.7", "203.0.113.7"],
  ["a client that no proxy speaks for", "203.0.113.7", "198.51.100.9", "203.0.113.7"],
  ["what the client itself wrote", "10.0.0.1", "198.51.100.9, 203.0.113.7", "203.0.113.7"],
  [
    "what the client wrote, with a proxy's name",
    "10.0.0.1",
    "198.51.100.9, 10.0.0.2, 203.0.113.7",
    "203.0.113.7",
  ],
  ["a chain of proxies", "127.0.0.1", "203.0.113.7, 10.0.0.2, 10.0.0.1", "203.0.113.7"],
  ["proxies alone", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["white space", "10.0.0.1", " \t203.0.113.7\t ,10.0.0.2  ", "203.0.113.7"],
  ["white space of no bounds", "10.0.0.1", `203.0.113.7${" ".repeat(64)}`, "10.0.0.1"],
  ["several headers", "10.0.0.1", ["203.0.113.7", "10.0.0.2"], "203.0.113.7"],
  ["IPv6", "fd00::1", "2001:db8::7", "2001:db8::7"],
  ["IPv6, written otherwise", "fd00::1", "2001:DB8:0:0::7, FD00:0::2", "2001:db8::7"],
  ["IPv4 in the form of IPv6", "10.0.0.1", "::ffff:203.0.113.7", "203.0.113.7"],
  ["the same in hexadecimal digits", "10.0.0.1", "::ffff:cb00:7107", "203.0.113.7"],
  ["a proxy in the form of IPv6", "10.0.0.1", "203.0.113.7, ::ffff:10.0.0.2", "203.0.113.7"],
  ["a range's last address", "10.255.255.255", "203.0.113.7", "203.0.113.7"],
  ["the address behind a range", "11.0.0.0", "203.0.113.7", "11.0.0.0"],
  ["a connection that was gone at once", "", "203.0.113.7", ""],
])("of %s: %j says %j, so it is %j", (_, peer, forwarded, client) => {
  expect(clientAddress(peer, forwarded)).toBe(client);
});

test.each([
  "unknown",
  "_hidden",
  "203.0.113",
  "203.0.113.256",
  "203.0.113.07",
  "203.0.113.7:5678",
  "[2001:db8::7]",
  "2001:db8::7%eth0",
  "2001:db8::7::",
  "for=203.0.113.7",
  '"203.0.113.7"',
  "203.0.113.7\u0000",
  "203.0.113.7;203.0.113.8",
  "ä",
  "",
  " ",
])("%j is no address, so the last proxy before it is named, and nothing further away", (garbage) => {
  expect(clientAddress("10.0.0.1", garbage)).toBe("10.0.0.1");
  expect(clientAddress("10.0.0.1", `203.0.113.7, ${garbage}, 10.0.0.2`)).toBe("10.0.0.2");
});

test("as many proxies are followed as there may be, and no further one", () => {
  const through = (proxies: number) => {
    const further = Array.from({ length: proxies - 1 }, (_, index) => `10.0.1.${proxies - 1 - index}`);
    return clientAddress("10.0.0.1", ["203.0.113.7", ...further].join(", "));
  };
  expect(through(MAX_PROXIES - 1)).toBe("203.0.113.7");
  expect(through(MAX_PROXIES)).toBe("203.0.113.7");
  expect(through(MAX_PROXIES + 1)).toBe(`10.0.1.${MAX_PROXIES}`);
});

test.each([
  ["one text", "1".repeat(16_000)],
  ["commas", ",".repeat(16_000)],
  ["proxies", "10.0.0.2,".repeat(1_700)],
  ["no addresses", "x, ".repeat(5_000)],
])("a list as long as headers can be, of %s, hides no client", (_, text) => {
  expect(clientAddress("10.0.0.1", text)).toBe("10.0.0.1");
  expect(clientAddress("10.0.0.1", `${text},203.0.113.7`)).toBe("203.0.113.7");
  expect(clientAddress("203.0.113.7", text)).toBe("203.0.113.7");
});

test("without trusted proxies nobody can name another address", () => {
  expect(createClientAddress([])("127.0.0.1", "203.0.113.7")).toBe("127.0.0.1");
});

test("addresses of sockets are written as in lists", () => {
  expect(plainAddress("::ffff:10.0.0.1")).toBe("10.0.0.1");
  expect(plainAddress("fe80::1%eth0")).toBe("fe80::1");
  expect(plainAddress("2001:db8::1")).toBe("2001:db8::1");
});
