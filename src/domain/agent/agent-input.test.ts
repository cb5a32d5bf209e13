import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { UserInputBlockSchema as BlockSchema } from "#gen/service/v1/agent_pb.js";
import { DomainError } from "../error.ts";
import { acceptedMessage } from "./agent-input.ts";

type Sent = MessageInitShape<typeof BlockSchema>;

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const text = (content: string) => ({ case: "text", value: { content } }) as const;
const image = (data: Uint8Array, more: object = {}) =>
  ({ case: "image", value: { data, mimeType: "image/png", ...more } }) as const;
const accepted = (sent: Sent, keepsMetadata = false) =>
  acceptedMessage(create(BlockSchema, sent), { id: "made", now: 7, keepsMetadata });

/** Returns the field that a message is rejected for. */
function refusedField(sent: Sent): string | undefined {
  try {
    accepted(sent);
    return undefined;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return error.metadata.field;
  }
}

describe("a message", () => {
  test("keeps the id of its sender, and gets one where that chose none", () => {
    expect(accepted({ id: "mine", input: text("x") }).id).toBe("mine");
    expect(accepted({ input: text("x") }).id).toBe("made");
  });

  test("of the older form becomes one of the newer", () => {
    for (const input of [text("x"), image(PNG)]) {
      expect(accepted({ input })).toEqual(accepted({ inputs: [{ input }] }));
      expect(accepted({ input }).input.case).toBeUndefined();
    }
  });

  test("was made when it came, whatever its sender says", () => {
    for (const keepsMetadata of [false, true]) {
      const { createdAt } = accepted({ input: text("x"), createdAt: timestampFromMs(1) }, keepsMetadata);
      expect(createdAt).toEqual(timestampFromMs(7));
    }
  });

  test("keeps notes of integrations and runners only", () => {
    const sent = {
      inputs: [{ input: image(PNG, { dataRef: "there" }) }, { input: text("x") }],
      metadata: { source: "chat.example.org" },
    };
    expect(accepted(sent, true)).toMatchObject({
      inputs: [{ input: { value: { dataRef: "there" } } }, { input: text("x") }],
      metadata: { source: "chat.example.org" },
    });
    const kept = accepted(sent);
    expect(kept.metadata).toBeUndefined();
    expect(kept.inputs).toMatchObject([
      { input: { value: { dataRef: "", data: PNG, mimeType: "image/png" } } },
      { input: text("x") },
    ]);
    // The sent message is not modified.
    expect(sent.inputs[0]?.input.value).toMatchObject({ dataRef: "there" });
  });

  test("is refused for a part that is not what it claims, by the name that the part has", () => {
    const gif = image(new TextEncoder().encode("GIF89a.."));
    expect(refusedField({ input: gif })).toBe("userInput.image.data");
    expect(refusedField({ inputs: [{ input: text("x") }, { input: gif }] })).toBe(
      "userInput.inputs[1].image.data",
    );
    expect(refusedField({ input: text("\u202ex") })).toBe("userInput.text.content");
    expect(refusedField({ inputs: [{ input: text("\u202ex") }] })).toBe("userInput.inputs[0].text.content");
  });
});
