import { createClient } from "@connectrpc/connect";
import { useMutation } from "@tanstack/react-query";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { transport } from "./server.tsx";
import { tellTabs } from "./tabs.ts";
import { forgetTyped } from "./typed.ts";

const users = createClient(UserService, transport);

/** Ends sessions of the person: this one or, with `everywhere`, first all others. */
export function useSignOut() {
  return useMutation({
    async mutationFn({ everywhere = false }: { readonly everywhere?: boolean }) {
      const { sessions } = await users.listSessions({ pagination: { pageSize: 100 } });
      // The current session last: without it no others can be ended.
      const ending = sessions.filter(({ current }) => everywhere || current);
      for (const { id } of ending.toSorted((one, other) => Number(one.current) - Number(other.current))) {
        await users.revokeSession({ sessionId: id });
      }
    },
    onSuccess() {
      forgetTyped();
      tellTabs();
      location.assign("/sign-in");
    },
  });
}
