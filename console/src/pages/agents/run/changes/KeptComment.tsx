import { Textarea } from "@mantine/core";
import { ConfirmButton } from "../../../../parts/ConfirmButton.tsx";

/** Asks for confirmation before text that has not become a comment is discarded. */
export function DiscardComment({ onDiscard }: { readonly onDiscard: () => void }) {
  return (
    <ConfirmButton
      label="Discard comment"
      question="Discards the text you typed here."
      onConfirm={onDiscard}
    />
  );
}

/** Shows an unfinished comment whose lines no longer exist, to be read, copied and discarded. */
export function KeptComment({ text, onDiscard }: { readonly text: string; readonly onDiscard: () => void }) {
  return (
    <>
      <Textarea
        aria-label="Comment that was not added"
        autosize
        minRows={1}
        maxRows={8}
        readOnly
        value={text}
      />
      <div className="row">
        <DiscardComment onDiscard={onDiscard} />
      </div>
    </>
  );
}
