import { create, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  CreateProjectRequestSchema,
  CreateProjectsRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { deterministicBytes } from "./deterministic-bytes.ts";

const one = { name: "ship", annotations: { a: "1", b: "2" } };
const other = { name: "ship", annotations: { b: "2", a: "1" } };
const bytes = (json: object) =>
  deterministicBytes(CreateProjectRequestSchema, fromJson(CreateProjectRequestSchema, json as never));

describe("the bytes of a message", () => {
  test("are the same whatever order its maps came in", () => {
    const plain = (json: object) =>
      toBinary(CreateProjectRequestSchema, fromJson(CreateProjectRequestSchema, json as never));
    expect(plain(one)).not.toEqual(plain(other));
    expect(bytes(one)).toEqual(bytes(other));
  });

  test("are the same for maps inside the elements of a list", () => {
    const many = (element: object) =>
      deterministicBytes(
        CreateProjectsRequestSchema,
        fromJson(CreateProjectsRequestSchema, { projects: [element] } as never),
      );
    expect(many(one)).toEqual(many(other));
  });

  test("are a binary form of it, and leave it as it was", () => {
    const message = fromJson(CreateProjectRequestSchema, other as never);
    const before = toBinary(CreateProjectRequestSchema, message);
    const sorted = deterministicBytes(CreateProjectRequestSchema, message);
    expect(toBinary(CreateProjectRequestSchema, message)).toEqual(before);
    expect(fromBinary(CreateProjectRequestSchema, sorted)).toEqual(message);
  });

  test("differ where a value does", () => {
    expect(bytes(one)).not.toEqual(bytes({ ...one, name: "boat" }));
    expect(bytes({})).toEqual(toBinary(CreateProjectRequestSchema, create(CreateProjectRequestSchema)));
  });
});
