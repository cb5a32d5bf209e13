import { isIP } from "node:net";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../test/harness/seed.ts";
import { isPublicAddress } from "./public-address.ts";

/** First and last address of each closed block, and its public neighbours outside. */
describe("a closed block ends where the registry says", () => {
  test.each([
    ["0.0.0.0", "0.255.255.255", undefined, "1.0.0.0"],
    ["10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
    ["100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
    ["127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
    ["168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"],
    ["169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
    ["172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
    ["192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
    ["192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"],
    ["192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"],
    ["192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
    ["198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
    ["198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"],
    ["203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"],
    ["224.0.0.0", "239.255.255.255", "223.255.255.255", undefined],
    ["240.0.0.0", "255.255.255.255", undefined, undefined],
    ["::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", undefined, "2000::"],
    ["2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2000:ffff::", "2001:200::"],
    ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff::", "2001:db9::"],
    ["3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3ffe:ffff::", "3fff:1000::"],
    ["4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:ffff::", undefined],
  ])("%s to %s", (first, last, before, after) => {
    expect([first, last].map(isPublicAddress)).toEqual([false, false]);
    for (const neighbour of [before, after]) {
      if (neighbour !== undefined) expect([neighbour, isPublicAddress(neighbour)]).toEqual([neighbour, true]);
    }
  });
});

test.each([
  ["::1", "loopback"],
  ["fe80::1", "link-local"],
  ["fc00::1", "unique local"],
  ["fd00:ec2::254", "metadata"],
  ["ff02::1", "multicast"],
  ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"],
  ["64:ff9b:1::808:808", "NAT64 of a local operator"],
  ["::8.8.8.8", "IPv4-compatible, deprecated"],
  ["::ffff:0:808:808", "IPv4-translated"],
])("%s (%s) is not public", (ip) => {
  expect(isPublicAddress(ip)).toBe(false);
});

describe("an IPv6 address that carries an IPv4 one is judged by it", () => {
  test.each([
    ["::ffff:8.8.8.8", true],
    ["::ffff:808:808", true],
    ["0:0:0:0:0:ffff:8.8.8.8", true],
    ["::ffff:127.0.0.1", false],
    ["::FFFF:7f00:1", false],
    ["::ffff:169.254.169.254", false],
    ["64:ff9b::8.8.8.8", true],
    ["64:ff9b::10.0.0.1", false],
    ["64:ff9b::a9fe:a9fe", false],
    ["2002:808:808::1", true],
    ["2002:7f00:1::", false],
    ["2002:c0a8:101:1::8.8.8.8", false],
  ])("%s: %s", (ip, expected) => {
    expect(isPublicAddress(ip)).toBe(expected);
  });
});

test.each([
  "",
  "localhost",
  "8.8.8",
  "8.8.8.8.8",
  "8.8.8.256",
  "08.8.8.8",
  "0x8.8.8.8",
  "134744072",
  " 8.8.8.8",
  "8.8.8.8\n",
  "[2606:4700::1]",
  "2606:4700::1%eth0",
  "2606:4700::1::2",
  "2606:4700:::1",
  "2606:4700:0:0:0:0:0",
  "2606:4700:0:0:0:0:0:0:0",
  "2606:4700:0:0:0:0:0:0::",
  "2606:47000::1",
  "2606:4700::8.8.8",
  ":2606:4700::1",
  "2606:4700::1:",
  ":",
])("%j is no address, so it is not public", (text) => {
  expect(isPublicAddress(text)).toBe(false);
});

test("the ways of writing one IPv6 address are judged alike, and what Node reads as no address is not public", () => {
  fc.assert(
    fc.property(fc.ipV6(), (ip) => {
      expect(isIP(ip)).toBe(6);
      const canonical = new URL(`http://[${ip}]`).hostname.slice(1, -1);
      expect(isPublicAddress(ip)).toBe(isPublicAddress(canonical));
      expect(isPublicAddress(ip.toUpperCase())).toBe(isPublicAddress(ip));
    }),
    replay,
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9a-f:.]{1,24}$/), (text) => {
      if (isIP(text) === 0) expect(isPublicAddress(text)).toBe(false);
    }),
    replay,
  );
});
