import { useMutation } from "@connectrpc/connect-query";
import { Button, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useState } from "react";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { queries } from "../../api/server.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Page } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ShownOnce } from "../../parts/ShownOnce.tsx";
import { RunnersSection } from "../home/RunnersSection.tsx";
import { useIsAdministrator } from "../organization/may-change.ts";
import { Readiness } from "./Readiness.tsx";
import { RunnerActions } from "./RunnerActions.tsx";

/** Lists the runners of the organization, with the command to start another one, and whether the server is ready. */
export function Runners() {
  const [isOpen, dialog] = useDisclosure();
  const isAdministrator = useIsAdministrator();
  return (
    <Page
      title="Runners"
      facts={isAdministrator === false && <span>Only administrators can create runners.</span>}
      actions={
        isAdministrator && (
          <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={dialog.open}>
            Create runner
          </Button>
        )
      }
    >
      <RunnersSection actions={isAdministrator ? (runner) => <RunnerActions runner={runner} /> : undefined} />
      <Readiness />
      {isOpen && (
        <Dialog title="Create runner" size={640} onClose={dialog.close}>
          <CreateRunner onClose={dialog.close} />
        </Dialog>
      )}
    </Page>
  );
}

/** The server's address for programs on this machine: few systems resolve the name that browsers use. */
const SERVER = location.origin.replace(/^http:\/\/chartroom\.localhost\b/, "http://127.0.0.1");

/** Creates a runner and shows the command that starts it. Its token appears nowhere else on the page. */
function CreateRunner({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [command, setCommand] = useState("");
  const create = useMutation(RunnerService.method.createRunner, {
    gcTime: 0,
    onSuccess({ exchangeToken }) {
      setCommand(`CHARTROOM_EXCHANGE_TOKEN=${exchangeToken} npx chartroom runner --server ${SERVER}`);
      create.reset();
      void queries.invalidateQueries();
    },
  });
  if (command !== "") {
    return (
      <ShownOnce
        note="Run this on the runner's machine, in a Chartroom folder. Its token can be used once, within 24 hours."
        text={command}
        what="command"
        onClose={onClose}
      />
    );
  }
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        create.mutate({ name });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="Name"
        required
        data-autofocus
        value={name}
        maxLength={127}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create runner
        </Button>
      </div>
    </form>
  );
}
