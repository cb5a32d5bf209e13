import { Modal } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useFocusBack } from "./use-focus-back.ts";

/**
 * A window over the page for one task; rendered only while it is open. A click outside closes it, unless that would
 * discard typed text.
 */
export function Dialog({
  title,
  size = 560,
  onClose,
  children,
}: {
  readonly title: string;
  readonly size?: number;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const [isTyped, setTyped] = useState(false);
  useFocusBack();
  return (
    <Modal
      opened
      closeOnClickOutside={!isTyped}
      onInput={() => setTyped(true)}
      onClose={onClose}
      title={title}
      size={size}
      transitionProps={{ duration: 120 }}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {children}
    </Modal>
  );
}
