import { isRepositoryPath } from "../domain/source/repository-path.ts";
import { ScmFailure } from "./failure.ts";

/** A JSON object from a host; its fields are unverified and are read one by one. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns a value as an object; an empty object when it is not one. */
export function readFields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/**
 * Reads a list of objects.
 * @throws ScmFailure unreadable
 */
export function readFieldsList(host: string, value: unknown): Fields[] {
  if (!Array.isArray(value)) throw new ScmFailure("unreadable", host, "answered no list where one belongs");
  return value.map(readFields);
}

/**
 * Reads a number.
 * @throws ScmFailure unreadable
 */
export function numberIn(host: string, from: Fields, name: string): number {
  const value = from[name];
  if (Number.isSafeInteger(value)) return value as number;
  throw new ScmFailure("unreadable", host, `answered without the number ${name}`);
}

/**
 * Reads a link that can be shown to people.
 *
 * @throws ScmFailure unreadable, also for a link that is not http or https
 */
export function linkIn(host: string, from: Fields, name: string): string {
  const value = from[name];
  const url = typeof value === "string" && value.length <= 2_048 ? URL.parse(value) : null;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url.href;
  throw new ScmFailure("unreadable", host, `answered without the link ${name}`);
}

/**
 * Reads a repository as in `owner/name`, safe in a URL.
 *
 * @throws ScmFailure unreadable
 */
export function repositoryIn(host: string, from: Fields, name: string): string {
  const value = from[name];
  if (typeof value === "string" && isRepositoryPath(value)) return value;
  throw new ScmFailure("unreadable", host, `answered without the repository ${name}`);
}
