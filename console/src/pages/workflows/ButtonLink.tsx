import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** A link to another page, shown as the main action. */
export function ButtonLink({ to, children }: { readonly to: string; readonly children: ReactNode }) {
  return (
    <Link to={to} className="button-link">
      {children}
    </Link>
  );
}
