import { expect, test } from "@jest/globals";
import { isOfType } from "./image-type.ts";

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0);
const JPEG = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0);

test("a file is of the type that its first bytes say", () => {
  expect(isOfType(PNG, "image/png")).toBe(true);
  expect(isOfType(JPEG, "image/jpeg")).toBe(true);
  expect(isOfType(PNG, "image/jpeg")).toBe(false);
  expect(isOfType(JPEG, "image/png")).toBe(false);
});

test("a file that ends within the first bytes, or differs in one, is not of the type", () => {
  for (let length = 0; length < 8; length++)
    expect(isOfType(PNG.subarray(0, length), "image/png")).toBe(false);
  for (let length = 0; length < 3; length++) {
    expect(isOfType(JPEG.subarray(0, length), "image/jpeg")).toBe(false);
  }
  for (let place = 0; place < 8; place++) {
    expect(isOfType(PNG.with(place, 0x7f), "image/png")).toBe(false);
  }
});

test("a file of a type that is not taken is of no type", () => {
  expect(isOfType(PNG, "image/gif")).toBe(false);
  expect(isOfType(PNG, "constructor")).toBe(false);
});
