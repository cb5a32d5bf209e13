import { useSearch } from "@tanstack/react-router";
import { usePerson } from "../../api/person.tsx";
import { Page, TabLinks } from "../../parts/Page.tsx";
import { Sessions } from "./Sessions.tsx";
import { Tokens } from "./Tokens.tsx";

/** Shows the person's own sessions and access tokens. */
export function Account() {
  const { tab = "sessions" } = useSearch({ from: "/account" });
  const { user, organization } = usePerson();
  return (
    <Page
      title="Account"
      facts={
        <span>
          {user?.name} ({user?.email}) in {organization?.name}
        </span>
      }
    >
      <TabLinks
        current={tab}
        tabs={[
          ["sessions", "Sessions"],
          ["tokens", "Access tokens"],
        ]}
      />
      {tab === "tokens" ? <Tokens userId={user?.id ?? ""} /> : <Sessions />}
    </Page>
  );
}
