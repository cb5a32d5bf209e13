import { fromJson, toBinary } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "@jest/globals";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { requestReading } from "../../rpc/request/request-reading.ts";
import { RequestThread } from "./request-thread.ts";

const method = ProjectService.method.createProject;
const reading = requestReading(method, false);
const REQUEST = {
  name: "Read",
  initializer: { specs: [{ git: { remoteUri: "https://git.example.org/read" } }] },
};
const thread = new RequestThread(false);
afterAll(() => thread.close());

const json = () => new Uint8Array(Buffer.from(JSON.stringify(REQUEST)));
const ask = (signal: AbortSignal, bytes = json()) =>
  thread.parse(reading, false, bytes, { caller: "a", signal });

test("what nobody waits for is dropped, and all others are read", async () => {
  const leaving = new AbortController();
  const first = ask(new AbortController().signal);
  const second = ask(leaving.signal);
  const third = ask(new AbortController().signal);
  leaving.abort();
  await expect(second).rejects.toThrow("[canceled]");
  await expect(ask(leaving.signal)).rejects.toThrow("[canceled]");
  expect(await first).toMatchObject({ name: "Read" });
  expect(await third).toMatchObject({ name: "Read" });
});

test("a part of other memory is read, and that memory stays", async () => {
  const binary = toBinary(method.input, fromJson(method.input, REQUEST));
  const whole = Buffer.concat([Buffer.alloc(100), binary, Buffer.alloc(100)]);
  const part = whole.subarray(100, 100 + binary.length);
  const turn = { caller: "a", signal: new AbortController().signal };
  expect(await thread.parse(reading, true, part, turn)).toMatchObject({ name: "Read" });
  expect(whole).toHaveLength(200 + binary.length);
});
