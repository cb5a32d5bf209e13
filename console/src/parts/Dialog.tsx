import { Modal } from "@mantine/core";
import type { ReactNode } from "react";

/** A window over the page for one thing to do; it is drawn only while it is open. */
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
  return (
    <Modal
      opened
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
