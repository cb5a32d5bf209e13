import { Code, ConnectError } from "@connectrpc/connect";
import { useMutation, useQuery } from "@tanstack/react-query";
import { tellTabs } from "./tabs.ts";

/** An organization that the person is a member of. */
export interface OwnOrganization {
  readonly id: string;
  readonly name: string;
  readonly current: boolean;
  /** The providers that sign the person in to it; when there are none, the session is exchanged. */
  readonly providers: readonly { readonly id: string; readonly name: string }[];
}

/** Reads the organizations that the person is a member of. */
export function useOrganizations() {
  return useQuery({
    queryKey: ["sign-in", "organizations"],
    queryFn: () => post<{ readonly organizations: readonly OwnOrganization[] }>("organizations", {}),
    refetchInterval: false,
    gcTime: 0,
  });
}

/** Exchanges the session for one in another organization and shows its Home page. */
export function useSwitch() {
  return useMutation({
    mutationFn: (organizationId: string) => post("organization", { organizationId }),
    onSuccess() {
      tellTabs();
      location.assign("/");
    },
  });
}

/** Goes to a provider, which signs the person in and sends the browser back to Home. */
export function useProvider() {
  return useMutation({
    async mutationFn(id: string) {
      const { url, problem } = await post<{ readonly url?: string; readonly problem?: string }>(
        `begin/${id}`,
        { replace: false },
      );
      if (url === undefined)
        throw new ConnectError(`the provider does not answer: ${problem}`, Code.Unavailable);
      location.assign(url);
    },
  });
}

/** Calls an endpoint below /sign-in. Its errors have the format of Connect's JSON errors. */
async function post<T>(path: string, body: object): Promise<T> {
  const res = await fetch(`/sign-in/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await res.json();
  if (res.ok) return answer;
  const code = res.status === 401 ? Code.Unauthenticated : Code.FailedPrecondition;
  throw new ConnectError(answer.message ?? "", code, res.headers);
}
