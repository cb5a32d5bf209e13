import type { MessageInitShape } from "@bufbuild/protobuf";
import type { UserInputBlock_InputSchema } from "#gen/service/v1/agent_pb.js";
import { keepTyped, readTyped } from "../../../api/typed.ts";

/** An image that is to be sent with a message. */
export interface Image {
  readonly name: string;
  readonly mimeType: string;
  readonly data: Uint8Array;
  /** The image as an address that the page can show. */
  readonly address: string;
}

/** Maximum bytes of an image, its types, and the maximum parts of a message (contract). */
const MAX_BYTES = 4_194_304;
export const IMAGE_TYPES: readonly string[] = ["image/png", "image/jpeg"];
const MAX_PARTS = 10;

/** Returns the images among files, and why the others are omitted. */
export async function imagesOf(
  files: readonly File[],
  already: number,
): Promise<{ readonly images: readonly Image[]; readonly problem: string }> {
  const images: Image[] = [];
  let problem = "";
  for (const file of files) {
    if (!IMAGE_TYPES.includes(file.type)) problem = `${file.name} is no PNG or JPEG image.`;
    else if (file.size > MAX_BYTES) problem = `${file.name} has more than 4 MiB.`;
    // One part is the text.
    else if (already + images.length >= MAX_PARTS - 1)
      problem = `A message has ${MAX_PARTS - 1} images at most.`;
    else {
      const data = new Uint8Array(await file.arrayBuffer());
      images.push({ name: file.name, mimeType: file.type, data, address: addressOf(file.type, data) });
    }
  }
  return { images, problem };
}

/** Returns a data URL of an image that the page may show, without referring to anything outside. */
export function addressOf(mimeType: string, data: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) {
    binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  }
  return `data:${mimeType};base64,${btoa(binary)}`;
}

/** Returns the parts of a message: its text, then the images. */
export function partsOf(
  text: string,
  images: readonly Image[],
): MessageInitShape<typeof UserInputBlock_InputSchema>[] {
  return [
    ...(text.trim() ? [{ input: { case: "text" as const, value: { content: text } } }] : []),
    ...images.map(({ mimeType, data }) => ({ input: { case: "image" as const, value: { mimeType, data } } })),
  ];
}

/** Name under which the tab keeps the images of a message until it is sent. */
const imagesName = (runId: string) => `images ${runId}`;

/** Maximum characters of images that a tab keeps: browsers allow 5 Mi in total, including the text. */
const MAX_KEPT = 5_000_000;

/** Keeps the images of an unsent message in the tab. Returns false when they are too large. */
export function keepImages(runId: string, images: readonly Image[]): boolean {
  const length = images.reduce((sum, { address }) => sum + address.length, 0);
  if (images.length > 0 && length <= MAX_KEPT) {
    const kept = images.map(({ name, mimeType, address }) => ({ name, mimeType, address }));
    if (keepTyped(imagesName(runId), JSON.stringify(kept))) return true;
  }
  keepTyped(imagesName(runId), "");
  return images.length === 0;
}

/** Returns the images of a message that was unsent when its page was left. */
export function keptImages(runId: string): readonly Image[] {
  try {
    const kept = JSON.parse(readTyped(imagesName(runId)) ?? "[]") as Omit<Image, "data">[];
    return kept.map((image) => ({
      ...image,
      data: Uint8Array.from(atob(image.address.split(",")[1] ?? ""), (each) => each.charCodeAt(0)),
    }));
  } catch {
    return [];
  }
}
