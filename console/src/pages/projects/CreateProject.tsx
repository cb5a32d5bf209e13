import { useMutation } from "@connectrpc/connect-query";
import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { queries } from "../../api/server.tsx";
import { Problem } from "../../parts/Problem.tsx";

/** Creates a project from a repository; the default name is the repository's. */
export function CreateProject({ onClose }: { readonly onClose: () => void }) {
  const [remoteUri, setRemoteUri] = useState("");
  const [name, setName] = useState("");
  const create = useMutation(ProjectService.method.createProject, {
    async onSuccess() {
      await queries.invalidateQueries();
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({
      ...(name && { name }),
      initializer: { specs: [{ spec: { case: "git", value: { remoteUri } } }] },
    });
  };
  return (
    <form className="stack" onSubmit={submit}>
      <Problem error={create.error} />
      <TextInput
        label="Repository URL"
        required
        data-autofocus
        value={remoteUri}
        maxLength={2048}
        onChange={(event) => setRemoteUri(event.currentTarget.value)}
      />
      <TextInput
        label="Name"
        description="If empty, the name of the repository is used."
        value={name}
        maxLength={80}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create project
        </Button>
      </div>
    </form>
  );
}
