import type { AgentInput, UserInputBlock_ImageInput as Image } from "#gen/service/v1/agent_pb.js";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";
import type { AgentInputImageTable } from "./agent-schema.ts";

/** The key of an input: its execution and its id. */
export interface InputKey {
  readonly executionId: Handle<"agent_execution">;
  readonly inputId: string;
}

type ImageData = Pick<AgentInputImageTable, "position" | "data">;

const insertRow = prepared<AgentInputImageTable, unknown>((db, row) =>
  db.insertInto("agent_input_image").values({
    execution_id: row.execution_id,
    input_id: row.input_id,
    position: row.position,
    data: row.data,
  }),
);

const selectImage = prepared<InputKey & { position: number }, Pick<ImageData, "data">>(
  (db, { executionId, inputId, position }) =>
    db
      .selectFrom("agent_input_image")
      .select("data")
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId)
      .where("position", "=", position),
);

const deleteImages = prepared<InputKey, unknown>((db, { executionId, inputId }) =>
  db.deleteFrom("agent_input_image").where("execution_id", "=", executionId).where("input_id", "=", inputId),
);

/** Takes the data of its images out of an input, which is modified. */
export function extractImages(input: AgentInput): ImageData[] {
  return [...imagesOf(input)].map(([position, image]) => {
    const { data } = image;
    image.data = new Uint8Array();
    return { position, data };
  });
}

/** Writes the data of the images of a new input. */
export async function insertImages(
  tx: WriteTransaction,
  { executionId, inputId }: InputKey,
  images: readonly ImageData[],
): Promise<void> {
  for (const { position, data } of images) {
    await insertRow(tx.db, { execution_id: executionId, input_id: inputId, position, data });
  }
}

/**
 * Puts the data of its images into an input, which is modified.
 * @param pause called between two images, of up to 4 MiB each
 */
export async function fillImages(
  db: Reader,
  executionId: Handle<"agent_execution">,
  input: AgentInput,
  pause: () => Promise<void>,
): Promise<void> {
  for (const [position, image] of imagesOf(input)) {
    const [row] = await selectImage(db, { executionId, inputId: input.id, position });
    if (row) image.data = row.data;
    await pause();
  }
}

/** Removes the data of the images of an input that will not be delivered any more. */
export async function removeImages(tx: WriteTransaction, name: InputKey): Promise<void> {
  await deleteImages(tx.db, name);
}

/** Returns the images by their position among the inputs of the message, from 0. */
function imagesOf({ input }: AgentInput): Map<number, Image> {
  const parts = input.case === "userInput" ? input.value.inputs : [];
  return new Map(
    parts.flatMap(({ input: part }, position) =>
      part.case === "image" ? [[position, part.value] as const] : [],
    ),
  );
}
