import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Ago } from "../../parts/Time.tsx";

/** What a table of tokens shows of one, a person's or a service account's. */
interface Token {
  readonly id: string;
  readonly description: string;
  readonly readOnly?: boolean;
  readonly createdAt?: Timestamp;
  readonly lastUsed?: Timestamp;
  readonly expiresAt?: Timestamp;
}

interface TokenTableProps {
  readonly label: string;
  readonly rows: readonly Token[];
  readonly onMore: (() => void) | undefined;
  readonly isLoadingMore: boolean;
  /** What deleting one does. */
  readonly question: string;
  readonly onDelete: (id: string) => void;
  /** The token that is being deleted. */
  readonly busyId: string | undefined;
}

/** A list of access tokens, each of which can be deleted. */
export function TokenTable({ question, onDelete, busyId, ...list }: TokenTableProps) {
  return (
    <DataTable
      {...list}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Description",
          cell: ({ description, readOnly }) => (
            <>
              {description || <span className="dim">none</span>}
              {readOnly && <span className="dim"> (read-only)</span>}
            </>
          ),
        },
        { head: "Created", cell: ({ createdAt }) => <Ago at={createdAt} />, isExtra: true },
        { head: "Last used", cell: ({ lastUsed }) => <Ago at={lastUsed} />, isExtra: true },
        { head: "Ends", cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
        {
          head: "Action",
          cell: ({ id }) => (
            <ConfirmButton
              label="Delete token"
              question={question}
              onConfirm={() => onDelete(id)}
              isBusy={busyId === id}
            />
          ),
        },
      ]}
    />
  );
}
