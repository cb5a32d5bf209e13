import { expect, test } from "@jest/globals";
import { hasImageType } from "./agent-input.ts";

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0);
const JPEG = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0);

test("a file is of the type that its first bytes say", () => {
  expect(hasImageType(PNG, "image/png")).toBe(true);
  expect(hasImageType(JPEG, "image/jpeg")).toBe(true);
  expect(hasImageType(PNG, "image/jpeg")).toBe(false);
  expect(hasImageType(JPEG, "image/png")).toBe(false);
});

test("a file that ends within the first bytes, or differs in one, is not of the type", () => {
  for (let length = 0; length < 8; length++)
    expect(hasImageType(PNG.subarray(0, length), "image/png")).toBe(false);
  for (let length = 0; length < 3; length++) {
    expect(hasImageType(JPEG.subarray(0, length), "image/jpeg")).toBe(false);
  }
  for (let place = 0; place < 8; place++) {
    expect(hasImageType(PNG.with(place, 0x7f), "image/png")).toBe(false);
  }
});

test("a file of a type that is not taken is of no type", () => {
  expect(hasImageType(PNG, "image/gif")).toBe(false);
  expect(hasImageType(PNG, "constructor")).toBe(false);
});
