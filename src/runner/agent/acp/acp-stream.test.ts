import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { OpenRequests } from "./acp-open-requests.ts";
import { AcpStream } from "./acp-stream.ts";

function openStream() {
  const requests = new OpenRequests();
  const unreadable: string[] = [];
  const listeners = {
    onWritten: () => undefined,
    onUnreadable: (_why: string, text: string) => unreadable.push(text),
    onUnread: () => undefined,
    waitForRoom: async () => undefined,
  };
  const acp = new AcpStream(listeners, requests, 60_000);
  const stdin = new PassThrough();
  stdin.resume();
  acp.open(stdin);
  const reader = acp.stream.readable.getReader();
  return { acp, requests, stdin, unreadable, receive: async () => (await reader.read()).value };
}

/** Returns a request as an agent writes it. */
const request = (id: number, content = "") =>
  Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id, method: "ask", params: { content } })}\n`);

/** Returns whether a promise settles without anything else that happens. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  return isSettled;
}

test.each([
  ["of 20 MB are not read while 64 MiB", "x".repeat(20_000_000), 4],
  ["are not read while 256", "", 256],
])("requests %s are open", async (_, content, most) => {
  const { acp, requests, receive } = openStream();
  const lines = Array.from({ length: most + 1 }, (_, id) => request(id, content));
  const reading = acp.read(Buffer.concat(lines));
  expect(await settles(reading)).toBe(false);
  expect(requests.size.count).toBe(most);
  const writer = acp.stream.writable.getWriter();
  await writer.write({ jsonrpc: "2.0", id: 1, result: {} });
  await reading;
  expect(requests.size.count).toBe(most);
  for (let id = 0; id <= most; id++) expect(await receive()).toMatchObject({ id });
});

test("the rest of the output of a program that takes no more answers is read, but no more requests than that", async () => {
  const { acp, requests, stdin } = openStream();
  const reading = acp.read(Buffer.concat(Array.from({ length: 300 }, (_, id) => request(id))));
  expect(await settles(reading)).toBe(false);
  stdin.destroy();
  await reading;
  expect(requests.size.count).toBe(256);
});

test("what is no message of the protocol does not reach the library, which quotes it in its answers", async () => {
  const { acp, receive, unreadable } = openStream();
  const lines = [
    '{"id":1,"method":"ask"}',
    '{"jsonrpc":"2.0","id":{},"method":"ask"}',
    '{"jsonrpc":"2.0","method":1}',
    '{"jsonrpc":"2.0"}',
  ];
  await acp.read(Buffer.from(`${lines.join("\n")}\n`));
  await acp.read(request(7));
  expect(await receive()).toMatchObject({ id: 7 });
  expect(unreadable).toEqual(lines);
});

test("large answers are made while 16 MiB of them are unread at most", async () => {
  const requests = new OpenRequests();
  for (const id of ["a", "b"]) requests.add(id, 10);
  requests.addAnswer("a", 16_777_217);
  const waiting = requests.waitForAnswers();
  expect(await settles(waiting)).toBe(false);
  requests.delete("b");
  expect(await settles(waiting)).toBe(false);
  requests.delete("a");
  await waiting;
  expect(requests.size).toEqual({ count: 0, bytes: 0 });
});
