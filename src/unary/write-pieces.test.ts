import { once } from "node:events";
import http, { type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import type { OutputAccount } from "../rpc/access/call-record.ts";
import { endWith, PIECE_BYTES, piecesOf } from "./write-pieces.ts";

const together = (body: Parameters<typeof piecesOf>[0]) => Buffer.concat([...piecesOf(body)]);

describe("the pieces of a body", () => {
  test.each([
    ["small texts", ["a", "", "bc"]],
    ["letters of three bytes", ["€".repeat(PIECE_BYTES)]],
    [
      "characters of two halves, at even places and at odd",
      ["😀".repeat(PIECE_BYTES), "x", "😀".repeat(PIECE_BYTES)],
    ],
    ["many texts", Array.from({ length: 100 }, (_, index) => `${index}${"x".repeat(4_000)}`)],
  ])("of %s are the same bytes, none of them large", (_, texts) => {
    expect(together(texts).equals(Buffer.from(texts.join("")))).toBe(true);
    expect(together(texts.join("")).equals(Buffer.from(texts.join("")))).toBe(true);
    expect(Math.max(...[...piecesOf(texts)].map(({ length }) => length))).toBeLessThanOrEqual(PIECE_BYTES);
  });

  test.each([0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1])(
    "of %d bytes are parts of them",
    (length) => {
      const bytes = new Uint8Array(length).fill(7);
      expect(together(bytes).equals(bytes)).toBe(true);
      expect([...piecesOf(bytes)]).toHaveLength(Math.ceil(length / PIECE_BYTES));
    },
  );
});

test("a large text is written at the pace of its client, who gets all of it", async () => {
  const text = "€uro".repeat(2_000_000);
  const server = http.createServer().listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const request = http.get({ host: "127.0.0.1", port });
    const [, res] = (await once(server, "request")) as [unknown, ServerResponse];
    let takenBytes = 0;
    let mostWaiting = 0;
    const account = {
      take(bytes: number) {
        takenBytes += bytes;
        mostWaiting = Math.max(mostWaiting, res.writableLength);
      },
    } as OutputAccount;
    const written = endWith(res, text, Buffer.byteLength(text), account);
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    expect((await buffer(response)).equals(Buffer.from(text))).toBe(true);
    await written;
    expect(takenBytes).toBe(Buffer.byteLength(text));
    expect(mostWaiting).toBeLessThan(2 * PIECE_BYTES);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
