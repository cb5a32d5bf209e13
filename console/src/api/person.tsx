import { useQuery } from "@connectrpc/connect-query";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { UserService } from "#gen/service/v1/user_service_pb.js";

/** Milliseconds for which names are cached. */
const NAME_MS = 600_000;

/** Reads who is signed in, and the organization that the session acts in. */
export function usePerson() {
  const reading = useQuery(UserService.method.getAuthenticatedUser, {}, { staleTime: NAME_MS });
  const user = reading.data?.user;
  const organizationId = user?.organizationId ?? "";
  const { data } = useQuery(
    OrganizationService.method.getOrganization,
    { organizationId },
    { staleTime: NAME_MS, enabled: organizationId !== "" },
  );
  return { reading, user, organization: data?.organization };
}

const KINDS: Readonly<Partial<Record<Principal, string>>> = {
  [Principal.SERVICE_ACCOUNT]: "a service account",
  [Principal.RUNNER]: "a runner",
  [Principal.ENVIRONMENT]: "an environment",
};

/** Shows who did something: a person's name, or else the kind of subject. */
export function Who({ subject }: { readonly subject: Subject | undefined }) {
  const isUser = subject?.principal === Principal.USER;
  const { data } = useQuery(
    UserService.method.getUser,
    { userId: subject?.id ?? "" },
    { enabled: isUser, staleTime: NAME_MS, refetchInterval: false, retry: false },
  );
  if (!subject) return <span className="dim">the server</span>;
  if (isUser) return <bdi>{data?.user?.name ?? "…"}</bdi>;
  return <span className="dim">{KINDS[subject.principal] ?? "the server"}</span>;
}
