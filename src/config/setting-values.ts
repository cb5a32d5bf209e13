import { isIP } from "node:net";

/**
 * Reads a text that is not empty. This and the following readers throw an Error
 * whose message completes "--port ...".
 */

export function nonEmpty(text: string): string {
  if (text.trim() === "") throw new Error("must not be empty");
  return text;
}

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Reads an address with its port, such as `127.0.0.1:9464` or `[::1]:9464`; undefined for `none`. */
export function listenAddress(text: string): ListenAddress | undefined {
  if (text === "none") return undefined;
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const [host, port] = [bracketed ?? plain ?? "", Number(digits)];
  if (host === "" || port > 65_535 || (bracketed !== undefined && isIP(bracketed) !== 6)) {
    throw new Error(`must be an address with its port, such as 127.0.0.1:9464, or none, not "${text}"`);
  }
  return { host, port };
}

export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || number > most) {
      throw new Error(`must be a whole number from ${least} to ${most}, not "${text}"`);
    }
    return number;
  };
}

/** Reads a fraction from 0 to 1. */
export function share(text: string): number {
  const number = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || number > 1) {
    throw new Error(`must be a number from 0 to 1, such as 0.1, not "${text}"`);
  }
  return number;
}

export function boolean(text: string): boolean {
  if (text !== "true" && text !== "false") throw new Error(`must be true or false, not "${text}"`);
  return text === "true";
}
/** What shells complete. */
boolean.choices = ["true", "false"];

/** Returns a reader with its choices, which shells complete. */
export function oneOf<T extends string>(allowed: readonly T[]) {
  const read = (text: string) => {
    const found = allowed.find((each) => each === text);
    if (found === undefined) throw new Error(`must be one of ${allowed.join(", ")}, not "${text}"`);
    return found;
  };
  return Object.assign(read, { choices: allowed });
}

export function baseUrl(text: string): string {
  if (text === "") return "";
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password) {
    // A user, a query or a fragment may hold a secret.
    const shown = /[@?#]/.test(text) ? "" : `, not "${text}"`;
    throw new Error(`must be an http or https URL without query, fragment or user${shown}`);
  }
  // Not the text itself: the parser also accepts blanks, missing slashes and an empty query.
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

export function serverUrl(text: string): string {
  return baseUrl(nonEmpty(text));
}

export function origins(text: string): ReadonlySet<string> {
  const list = text.split(",").flatMap((each) => each.trim() || []);
  for (const each of list) {
    if (URL.parse(each)?.origin !== each)
      throw new Error(`must list origins such as https://console.example.org, not "${each}"`);
  }
  return new Set(list);
}

/** Reads hosts in lower case, each with its port when it has one, such as `git.example.org:8080`. */
export function hosts(text: string): ReadonlySet<string> {
  const list = text.split(",").flatMap((each) => each.trim().toLowerCase() || []);
  for (const each of list) {
    const isHost = /^[\w.:[\]-]+$/.test(each) && URL.parse(`http://${each}`)?.origin === `http://${each}`;
    if (!isHost) throw new Error(`must list hosts such as git.example.org:8080, not "${each}"`);
  }
  return new Set(list);
}

/** A range of addresses: all that share their first `prefix` bits with `address`. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Reads addresses and ranges of addresses, such as `10.0.0.7, 192.168.4.0/24, fd00::/8`. */
export function networks(text: string): readonly Network[] {
  return text.split(",").flatMap((each) => (each.trim() === "" ? [] : network(each.trim())));
}

function network(text: string): Network {
  const [address = "", length, ...rest] = text.split("/");
  // A zone id, as in fe80::1%eth0, has no meaning on other machines.
  const version = address.includes("%") ? 0 : isIP(address);
  const bits = version === 6 ? 128 : 32;
  const prefix = Number(length ?? bits);
  const isLength = length === undefined || /^\d{1,3}$/.test(length);
  if (version === 0 || rest.length > 0 || !isLength || prefix > bits) {
    throw new Error(`must list addresses or ranges such as 10.0.0.7 or 192.168.4.0/24, not "${text}"`);
  }
  if (prefix === 0) throw new Error(`must name the proxies, but "${text}" is everybody`);
  return { address, prefix, family: version === 6 ? "ipv6" : "ipv4" };
}

/** Reads absolute paths, separated by colons as in PATH. */
export function paths(text: string): readonly string[] {
  const list = text.split(":").flatMap((each) => each.trim() || []);
  for (const each of list) {
    if (!each.startsWith("/")) throw new Error(`must list absolute paths, not "${each}"`);
  }
  return list;
}

/** Reads names of images, separated by commas; a `*` is allowed only at the end. */
export function images(text: string): readonly string[] {
  const list = text.split(",").flatMap((each) => each.trim() || []);
  for (const each of list) {
    if (!/^[\w.\-:/@]*\*?$/.test(each)) throw new Error(`must list names of images, not "${each}"`);
  }
  return list;
}

/** Reads a program: its absolute path, or its name in PATH. */
export function program(text: string): string {
  if (text.includes("/") && !text.startsWith("/"))
    throw new Error(`must be an absolute path or a name in PATH, not "${text}"`);
  return text;
}
