import { Textarea } from "@mantine/core";
import { ConfirmButton } from "../../../../parts/ConfirmButton.tsx";

/** Asks before words are thrown away that have not become a comment. */
export function DiscardComment({ onDiscard }: { readonly onDiscard: () => void }) {
  return (
    <ConfirmButton
      label="Discard comment"
      question="Forgets what you have typed here."
      onConfirm={onDiscard}
    />
  );
}

/** Shows a comment that was being typed and whose lines are not there: to be read, copied and discarded. */
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
