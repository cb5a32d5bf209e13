import type { Random } from "../harness/random.ts";

/** Returns the bytes with one to four faults: changed, truncated, repeated, moved or with insertions. */
export function mutateBytes(random: Random, bytes: Uint8Array): Buffer {
  let mutated = Buffer.from(bytes);
  for (let faults = random.integer(1, 4); faults > 0; faults--) {
    const at = random.integer(0, mutated.length);
    const head = mutated.subarray(0, at);
    const tail = mutated.subarray(at);
    mutated = random.pick([
      () => head,
      () => Buffer.concat([head, random.bytes(random.integer(1, 8)), tail]),
      () => Buffer.concat([head, tail.subarray(1)]),
      () =>
        Buffer.concat([head, Buffer.from([(tail[0] ?? 0) ^ (1 << random.integer(0, 7))]), tail.subarray(1)]),
      () => Buffer.concat([mutated, head]),
      () => Buffer.concat([tail, head]),
      () => Buffer.concat([head, random.pick(SNARES), tail]),
    ])();
  }
  return mutated;
}

/** Pieces of the binary format that decoders have failed on. */
const SNARES: readonly Buffer[] = [
  Buffer.alloc(9, 0xff), // a varint without an end
  Buffer.concat([Buffer.alloc(9, 0xff), Buffer.from([0x01])]), // the largest number
  Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]), // a length of two gigabytes
  Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), // a negative length
  Buffer.from([0x00, 0x00]), // field number 0
  Buffer.from([0x0c]), // the end of a group that was never started
  Buffer.alloc(20_000, 0x0b), // nested groups
  Buffer.from([0x0e, 0x0f]), // undefined wire types
  Buffer.from([0x0a, 0x04, 0xff, 0xfe, 0xc0, 0x80]), // invalid UTF-8
  Buffer.from([0xf8, 0xff, 0xff, 0xff, 0x0f, 0x01]), // the highest field number
];

/** Frames a message for gRPC or gRPC-Web. */
export function frame(message: Uint8Array, flags = 0, length = message.length): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length >>> 0, 1);
  return Buffer.concat([head, message]);
}

/** Returns a malformed frame. */
export function brokenFrame(random: Random, message: Uint8Array): Buffer {
  const whole = frame(message);
  return random.pick([
    () => Buffer.alloc(0),
    () => whole.subarray(0, random.integer(0, 5)),
    () => whole.subarray(0, random.integer(0, whole.length)),
    () =>
      frame(
        message,
        0,
        random.pick([message.length + 1, message.length - 1, 0, 2 ** 31, 2 ** 32 - 1, 2 ** 24]),
      ),
    () => frame(message, random.pick([1, 2, 3, 0x7f, 0x80, 0x81, 0xff])),
    () => Buffer.concat([whole, whole]),
    () => Buffer.concat([whole, frame(Buffer.alloc(0), random.pick([0, 2, 0x80]))]),
    () => Buffer.concat([whole, random.bytes(random.integer(1, 10))]),
    () => Buffer.from(random.bytes(random.integer(1, 60))),
    () => Buffer.from(whole.toString("base64")),
  ])();
}
