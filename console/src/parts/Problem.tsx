import { Button, CopyButton } from "@mantine/core";
import { failureOf } from "../api/failure.ts";
import { signInAddress } from "../api/session.ts";
import { Icon } from "./Icon.tsx";

/** Shows why a call failed, next to its cause: the server's sentence, the field, and the request id to copy. */
export function Problem({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  if (!error) return null;
  const { sentence, reasonName, field, requestId, isSignedOut } = failureOf(error);
  return (
    <div className="problem" role="alert">
      <div className="problem-text">
        <Icon name="failed" />
        <div>
          <p>{sentence}</p>
          {isSignedOut && (
            // The bar with this message may be hidden behind a window.
            <p className="small">
              <a href={signInAddress()} target="_blank" rel="noreferrer">
                Sign in again in another tab
              </a>
            </p>
          )}
          {requestId === "" && !onRetry && (
            <p className="small">
              Nothing you typed is lost. Before you repeat a change, check whether it was already made.
            </p>
          )}
          <p className="dim small">
            {field !== "" && (
              <>
                Field <code>{field}</code>.{" "}
              </>
            )}
            {reasonName !== "" && (
              <>
                Reason <code>{reasonName}</code>.{" "}
              </>
            )}
            {requestId !== "" && (
              <>
                Request <code>{requestId}</code>{" "}
                <CopyButton value={requestId}>
                  {({ copied, copy }) => (
                    <button type="button" className="link" onClick={copy}>
                      {copied ? "Copied" : "Copy"}
                    </button>
                  )}
                </CopyButton>
              </>
            )}
          </p>
        </div>
      </div>
      {onRetry && (
        <Button variant="default" size="xs" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
