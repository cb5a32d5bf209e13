import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect } from "@mantine/core";
import { useState } from "react";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { Problem } from "../../parts/Problem.tsx";

const DAY_SECONDS = 86_400;

/** Maximum days of a renewal (contract, RenewPersonalAccessTokenRequest): no token has more left. */
const MAX_DAYS = 90;

interface RenewTokenProps {
  readonly personalAccessTokenId: string;
  readonly expiresAt: Timestamp | undefined;
  readonly onRenewed: () => void;
  readonly onClose: () => void;
}

/** Extends one of the person's own tokens, which keeps its value. */
export function RenewToken({ personalAccessTokenId, expiresAt, onRenewed, onClose }: RenewTokenProps) {
  const [ends] = useState(() => newEnds(expiresAt, Date.now()));
  const [days, setDays] = useState(ends[0]?.days ?? MAX_DAYS);
  const renew = useMutation(UserService.method.renewPersonalAccessToken, {
    onSuccess() {
      onRenewed();
      onClose();
    },
  });
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        renew.mutate({ personalAccessTokenId, validFor: { seconds: BigInt(days * DAY_SECONDS) } });
      }}
    >
      <Problem error={renew.error} />
      <p>Programs that use the token keep working: its value does not change.</p>
      <NativeSelect
        label="Valid for"
        data-autofocus
        value={String(days)}
        onChange={(event) => setDays(Number(event.currentTarget.value))}
        data={ends.map(({ days, at }) => ({
          value: String(days),
          label: `${days} days, until ${at.toLocaleDateString()}`,
        }))}
      />
      <div className="row">
        <Button type="submit" loading={renew.isPending}>
          Renew token
        </Button>
      </div>
    </form>
  );
}

/** Returns the possible new ends of a token: the server accepts none before the current one. */
function newEnds(expiresAt: Timestamp | undefined, now: number) {
  const endsAt = expiresAt ? timestampMs(expiresAt) : 0;
  return [30, MAX_DAYS]
    .map((days) => ({ days, at: new Date(now + days * DAY_SECONDS * 1000) }))
    .filter(({ days, at }) => days === MAX_DAYS || at.getTime() >= endsAt);
}
