import {
  type DescField,
  type DescMessage,
  type MessageShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { deterministicBytes } from "./deterministic-bytes.ts";

/** Bytes fields above this size are not copied. */
const LARGE_BYTES = 64 * 1024;

const EMPTY = new Uint8Array();

/**
 * Yields the bytes of {@link deterministicBytes} in consecutive pieces. Otherwise
 * ten images of 4 MiB would be in memory three times, and serializing them would
 * block the event loop for a quarter of a second. Large bytes are not copied from
 * the message. Yields after each small part.
 */
export function* deterministicPieces<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
): Generator<void, readonly Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  yield* gather(reflect(schema, message), pieces);
  return pieces;
}

/** Adds the pieces of a message, and returns their length in bytes. */
function* gather(message: ReflectMessage, pieces: Uint8Array[]): Generator<void, number> {
  let length = 0;
  const add = (piece: Uint8Array): void => {
    length += piece.length;
    pieces.push(piece);
  };
  if (isFlat(message.desc)) {
    add(toBinary(message.desc, message.message));
    yield;
    return length;
  }
  // Consecutive fields are written together.
  let part = reflect(message.desc);
  const addPart = (): void => {
    add(deterministicBytes(part.desc, part.message));
    part = reflect(message.desc);
  };
  for (const field of message.sortedFields) {
    if (!message.isSet(field)) continue;
    const nested = messagesOf(message, field);
    if (nested) {
      addPart();
      for (const each of nested) {
        // The length of a message precedes it.
        const at = pieces.push(EMPTY) - 1;
        const announced = yield* gather(each, pieces);
        const head = headOf(field, announced);
        pieces[at] = head;
        length += head.length + announced;
      }
    } else if (isLarge(message, field)) {
      addPart();
      const bytes = message.get(field) as Uint8Array;
      add(headOf(field, bytes.length));
      add(bytes);
    } else {
      part.set(field, message.get(field));
    }
    yield;
  }
  const unknown = message.getUnknown();
  if (unknown) part.setUnknown(unknown);
  addPart();
  return length;
}

/**
 * Returns the messages of a field that holds one or a list of them; undefined for
 * other fields, including maps.
 */
function messagesOf(message: ReflectMessage, field: DescField): Iterable<ReflectMessage> | undefined {
  if (field.fieldKind === "message") return [message.get(field)];
  if (field.fieldKind !== "list" || field.listKind !== "message") return undefined;
  return message.get(field) as Iterable<ReflectMessage>;
}

function isLarge(message: ReflectMessage, field: DescField): boolean {
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.BYTES) return false;
  return (message.get(field) as Uint8Array).length > LARGE_BYTES;
}

/** Returns the tag and length of a field. */
function headOf({ number }: DescField, announced: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(announced).finish();
}

/**
 * Returns whether a message can be serialized as a whole: it has no maps to sort,
 * and no field that can hold large bytes.
 */
function isFlat({ fields }: DescMessage): boolean {
  return fields.every(
    (field) => field.fieldKind !== "map" && field.message === undefined && field.scalar !== ScalarType.BYTES,
  );
}
