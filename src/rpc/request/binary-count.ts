import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import type { RequestBounds } from "./request-bounds.ts";
import { tooComplex } from "./too-complex.ts";

/** The form of a field of a known number. */
interface FieldForm {
  readonly wireType: WireType;
  /** The nested form, when that is a message. */
  readonly message?: Form;
  /** The wire type of the elements of a list when they are packed. */
  readonly packed?: WireType;
}

type Form = ReadonlyMap<number, FieldForm>;

const NO_FIELDS: Form = new Map();

/** A message, or a group of an unknown field, that has begun and not ended. */
interface OpenMessage {
  readonly form: Form;
  readonly end: number;
  /** The number of the group, which has an end tag; undefined for a message. */
  readonly group: number | undefined;
}

/**
 * Counts the fields of a binary message at all levels, in one pass over its bytes
 * and without building anything: an empty element of a list takes two bytes, and
 * a hundred times as much once it is parsed. Refuses a known field with a wrong
 * wire type and a message that is longer than the one around it: the parser would
 * read other fields than were counted.
 *
 * @throws ConnectError BODY_TOO_COMPLEX at the first field past the limit, and
 *   invalid_argument for what is no binary message
 */
export function countBinary(schema: DescMessage, bytes: Uint8Array, bounds: RequestBounds): void {
  const { records } = bounds;
  const within: OpenMessage[] = [];
  const varint = new Varints(bytes);
  let open: OpenMessage = { form: formOf(schema), end: bytes.length, group: undefined };
  let count = 0;
  const add = (more: number): void => {
    count += more;
    if (count > records) throw tooComplex("records", records);
  };
  const enter = (next: OpenMessage): void => {
    // A map's entry and a timestamp are levels of the binary form alone.
    if (within.push(open) > 2 * bounds.depth) throw tooComplex("depth", bounds.depth);
    open = next;
  };
  for (;;) {
    while (varint.at >= open.end) {
      if (varint.at > open.end || open.group !== undefined) throw malformed();
      const outer = within.pop();
      if (!outer) return;
      open = outer;
    }
    const tag = varint.next();
    const number = tag >>> 3;
    const wireType: WireType = tag & 7;
    if (wireType === WireType.EndGroup) {
      if (open.group !== number) throw malformed();
      open = within.pop() as OpenMessage;
      continue;
    }
    add(1);
    const field = open.form.get(number);
    if (field && wireType !== field.wireType && !(field.packed !== undefined && wireType === LENGTH)) {
      throw malformed();
    }
    switch (wireType) {
      case WireType.Varint:
        varint.next();
        break;
      case WireType.Bit64:
        varint.at += 8;
        break;
      case WireType.Bit32:
        varint.at += 4;
        break;
      case WireType.StartGroup:
        enter({ form: NO_FIELDS, end: open.end, group: number });
        break;
      case WireType.LengthDelimited: {
        const length = varint.next();
        const end = varint.at + length;
        if (end > open.end) throw malformed();
        if (field?.message) {
          enter({ form: field.message, end, group: undefined });
        } else {
          if (field?.packed !== undefined) add(elements(bytes, varint.at, end, field.packed));
          varint.at = end;
        }
        break;
      }
      default:
        throw malformed();
    }
  }
}

const LENGTH = WireType.LengthDelimited;

function elements(bytes: Uint8Array, begin: number, end: number, wireType: WireType): number {
  if (wireType === WireType.Bit64) return (end - begin) / 8;
  if (wireType === WireType.Bit32) return (end - begin) / 4;
  let count = 0;
  for (let at = begin; at < end; at++) if ((bytes[at] as number) < 0x80) count++;
  return count;
}

/** Reads varints; bits past 32 are dropped, as the parser does with lengths and tags. */
class Varints {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  next(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) throw malformed();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed();
  }
}

function malformed(): ConnectError {
  return new ConnectError("the body is no binary message of the operation", Code.InvalidArgument);
}

const forms = new Map<DescMessage, Form>();

function formOf(schema: DescMessage): Form {
  const known = forms.get(schema);
  if (known) return known;
  const form = new Map<number, FieldForm>();
  // A message that contains itself finds the map that is filled here.
  forms.set(schema, form);
  for (const field of schema.fields) form.set(field.number, fieldForm(field));
  return form;
}

function fieldForm(field: DescField): FieldForm {
  if (field.fieldKind === "map") {
    const entry = new Map<number, FieldForm>([
      [1, { wireType: scalarWireType(field.mapKey) }],
      [2, valueForm(field.message, field.scalar)],
    ]);
    return { wireType: LENGTH, message: entry };
  }
  const form = valueForm(field.message, field.scalar);
  const isPackable = field.fieldKind === "list" && form.wireType !== LENGTH;
  return isPackable ? { ...form, packed: form.wireType } : form;
}

function valueForm(message: DescMessage | undefined, scalar: ScalarType | undefined): FieldForm {
  if (message) return { wireType: LENGTH, message: formOf(message) };
  return { wireType: scalar === undefined ? WireType.Varint : scalarWireType(scalar) };
}

function scalarWireType(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return LENGTH;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
