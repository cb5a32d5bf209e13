import { type ReactNode, useState } from "react";

interface DetailsProps {
  readonly className: string;
  /** The line that is always visible. */
  readonly summary: ReactNode;
  readonly children: ReactNode;
}

/** Shows a line that expands to its details. They are rendered only when open, since they may be long. */
export function Details({ className, summary, children }: DetailsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details className={className} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children}
    </details>
  );
}
