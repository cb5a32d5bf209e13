import { Button, CopyButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { usePerson } from "../../api/person.tsx";
import { Section } from "../../parts/Page.tsx";
import { useOwnRole } from "../organization/own-role.ts";

/** Starts a server with sample data when there is no data yet. */
const COMMAND = "npm start -- --sample-data";

/** Shows the first steps in an empty organization: explore the sample data, or begin. */
export function GetStarted() {
  const { user } = usePerson();
  const role = useOwnRole(user?.organizationId ?? "", user?.id ?? "");
  return (
    <Section title="Get started">
      <div className="card">
        {role === "administrator" && (
          <div className="stack">
            <h3>Explore with sample data</h3>
            <p>
              This organization is empty. The server can create a second one to try things in: workflows to
              run, an agent to talk with, its changes to review, and a push to approve. Yours stays as it is,
              and one command removes the sample.
            </p>
            <p>In the server's terminal, stop it with Ctrl-C, then run:</p>
            <div className="row">
              <code className="command">{COMMAND}</code>
              <CopyButton value={COMMAND}>
                {({ copied, copy }) => (
                  <Button size="xs" variant="default" onClick={copy}>
                    {copied ? "Copied" : "Copy command"}
                  </Button>
                )}
              </CopyButton>
            </div>
            <p className="dim">Then open the link that it prints.</p>
          </div>
        )}
        <div className="stack">
          <h3>{role === "administrator" ? "Or start with your own" : "Begin"}</h3>
          <ol className="first-steps">
            <li>
              <Link to="/runners">Create a runner</Link>, which carries out the work, or start the server with{" "}
              <code>--local-runner</code>.
            </li>
            <li>
              <Link to="/projects">Create a project</Link> of a repository.
            </li>
            <li>
              <Link to="/workflows/new">Create a workflow</Link>, or <Link to="/agents">start an agent</Link>.
            </li>
          </ol>
        </div>
      </div>
    </Section>
  );
}
