import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { State } from "../../parts/State.tsx";
import { Ago, useClock } from "../../parts/Time.tsx";
import { RenewToken } from "./RenewToken.tsx";

/** A token that ends within this time is marked, as in the server's announcement: 7 days, in milliseconds. */
const WARNING_MS = 7 * 86_400_000;

/** The fields of a personal or a service account's token that the table shows. */
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
  /** The question that says what deleting a token does. */
  readonly question: string;
  readonly onDelete: (id: string) => void;
  /** The id of the token that is being deleted. */
  readonly busyId: string | undefined;
  /** Called after a renewal. Absent for tokens that are not the person's own: service accounts get new ones instead. */
  readonly onRenewed?: () => void;
}

/** Lists access tokens. Each can be deleted, and the person's own can be renewed. */
export function TokenTable({ question, onDelete, busyId, onRenewed, ...list }: TokenTableProps) {
  return (
    <DataTable
      isStacked
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
        { head: "Expires", cell: ({ expiresAt }) => <End at={expiresAt} /> },
        {
          head: "Action",
          cell: ({ id, expiresAt }) => (
            <div className="row-actions">
              {onRenewed && (
                <DialogButton label="Renew token" isMain={false}>
                  {(close) => (
                    <RenewToken
                      personalAccessTokenId={id}
                      expiresAt={expiresAt}
                      onRenewed={onRenewed}
                      onClose={close}
                    />
                  )}
                </DialogButton>
              )}
              <ConfirmButton
                label="Delete token"
                question={question}
                onConfirm={() => onDelete(id)}
                isBusy={busyId === id}
              />
            </div>
          ),
        },
      ]}
    />
  );
}

/** Shows when a token ends, with a warning in its last 7 days. */
function End({ at }: { readonly at: Timestamp | undefined }) {
  const endsAt = at ? timestampMs(at) : Number.POSITIVE_INFINITY;
  const word = useClock((now) => (endsAt > now && endsAt - now <= WARNING_MS ? "Expires soon" : ""));
  return (
    <div className="row">
      <Ago at={at} />
      {word !== "" && <State tone="asks" word={word} />}
    </div>
  );
}
