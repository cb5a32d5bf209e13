import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import { Dialog } from "./Dialog.tsx";
import { Icon } from "./Icon.tsx";

interface DialogButtonProps {
  /** The verb on the button, and the title of the dialog. */
  readonly label: string;
  readonly size?: number;
  readonly isMain?: boolean;
  readonly children: (close: () => void) => ReactNode;
}

/** A button that opens a dialog. Closing the dialog discards what was typed. */
export function DialogButton({ label, size = 480, isMain = true, children }: DialogButtonProps) {
  const [isOpen, dialog] = useDisclosure();
  return (
    <>
      <Button
        size="xs"
        variant={isMain ? "filled" : "default"}
        leftSection={isMain && <Icon name="plus" size={14} />}
        onClick={dialog.open}
      >
        {label}
      </Button>
      {isOpen && (
        <Dialog title={label} size={size} onClose={dialog.close}>
          {children(dialog.close)}
        </Dialog>
      )}
    </>
  );
}
