/**
 * Blocks that no request may go to: the entries of the IANA special-purpose registry (RFC 6890)
 * that are not globally reachable, and multicast. One public address is among them, because a cloud
 * serves its metadata there.
 */
const CLOSED_IPV4: readonly (readonly [block: string, prefixBits: number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // shared by a carrier's customers
  ["127.0.0.0", 8], // loopback
  ["168.63.129.16", 32], // metadata of one cloud, at an address that looks public
  ["169.254.0.0", 16], // link-local, and metadata of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // relays of 6to4, deprecated
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** Only 2000::/3 is assigned to the public; these blocks of it are not. */
const CLOSED_IPV6: readonly (readonly [block: string, prefixBits: number])[] = [
  ["2001::", 23], // protocol assignments, with Teredo
  ["2001:db8::", 32], // documentation
  ["3fff::", 20], // documentation
];

/** Prefixes whose traffic ends at the IPv4 address embedded at this bit; that address decides. */
const IPV4_EMBEDDING: readonly (readonly [block: string, prefixBits: number, addressAtBit: number])[] = [
  ["::ffff:0:0", 96, 96], // IPv4-mapped
  ["64:ff9b::", 96, 96], // NAT64
  ["2002::", 16, 16], // 6to4
];

/**
 * Returns whether an address belongs to the public internet, so that a request on behalf of a
 * caller may go there. `ip` is an IPv4 address as four decimal numbers or an IPv6 address without
 * brackets; anything else (a name, a zone index, an octal or hexadecimal number) is not public.
 */
export function isPublicAddress(ip: string): boolean {
  const ipv4 = ipv4Number(ip);
  if (ipv4 !== undefined) return isPublicIpv4(ipv4);
  const ipv6 = ipv6Number(ip);
  return ipv6 !== undefined && isPublicIpv6(ipv6);
}

function isPublicIpv4(address: bigint): boolean {
  return !CLOSED_IPV4.some(([block, bits]) => isWithin(address, ipv4Number(block), bits, 32));
}

function isPublicIpv6(address: bigint): boolean {
  for (const [block, bits, at] of IPV4_EMBEDDING) {
    if (isWithin(address, ipv6Number(block), bits, 128)) {
      return isPublicIpv4((address >> BigInt(96 - at)) & 0xffff_ffffn);
    }
  }
  if (!isWithin(address, ipv6Number("2000::"), 3, 128)) return false;
  return !CLOSED_IPV6.some(([block, bits]) => isWithin(address, ipv6Number(block), bits, 128));
}

function isWithin(address: bigint, block: bigint | undefined, prefixBits: number, width: number): boolean {
  const shift = BigInt(width - prefixBits);
  return block !== undefined && address >> shift === block >> shift;
}

function ipv4Number(text: string): bigint | undefined {
  const parts = text.split(".");
  // Some parsers read a leading zero as octal and others as decimal: it is not accepted here.
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) {
    return undefined;
  }
  return parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
}

function ipv6Number(text: string): bigint | undefined {
  const [head = "", tail, more] = withoutDottedEnd(text)?.split("::") ?? [];
  if (text === "" || more !== undefined) return undefined;
  const first = groups(head);
  const last = tail === undefined ? [] : groups(tail);
  if (first === undefined || last === undefined) return undefined;
  const missing = 8 - first.length - last.length;
  // "::" stands for one group of zeros at least; without it all eight are there.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const all = [...first, ...Array<number>(missing).fill(0), ...last];
  return all.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
}

/** Returns the address with an IPv4 ending (::ffff:192.0.2.1) written as its two groups. */
function withoutDottedEnd(text: string): string | undefined {
  if (!text.includes(".")) return text;
  const start = text.lastIndexOf(":") + 1;
  const ending = ipv4Number(text.slice(start));
  if (ending === undefined) return undefined;
  return `${text.slice(0, start)}${(ending >> 16n).toString(16)}:${(ending & 0xffffn).toString(16)}`;
}

function groups(text: string): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  if (!parts.every((part) => /^[0-9a-fA-F]{1,4}$/.test(part))) return undefined;
  return parts.map((part) => Number.parseInt(part, 16));
}
