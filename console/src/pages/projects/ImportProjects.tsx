import { useMutation } from "@connectrpc/connect-query";
import { Button, Progress, Textarea } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { failureOf } from "../../api/failure.ts";
import { queries } from "../../api/server.tsx";
import { useKeptText } from "../../api/typed.ts";
import { chunksOf, type ImportLine, importLines } from "./import-lines.ts";

/** Projects per call: few, so that the progress is visible. */
const CALL = 20;

/** A line whose project was not created. */
interface Failed extends ImportLine {
  readonly error: string;
}

/** Creates a project from each line's repository, and reports which lines failed and why. */
export function ImportProjects({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useKeptText("repositories to import");
  const [progress, setProgress] = useState<{ done: number; all: number }>();
  const [failed, setFailed] = useState<readonly Failed[]>([]);
  const [made, setMade] = useState(0);
  const create = useMutation(ProjectService.method.createProjects);
  const lines = importLines(text);
  const isBusy = progress !== undefined && progress.done < progress.all;
  const start = async (event: FormEvent) => {
    event.preventDefault();
    const failures: Failed[] = [];
    let [done, created] = [0, 0];
    setFailed([]);
    setMade(0);
    for (const chunk of chunksOf(lines, CALL)) {
      setProgress({ done, all: lines.length });
      try {
        const { createdProjects, failedProjects } = await create.mutateAsync({
          projects: chunk.map(({ remoteUri }) => ({
            initializer: { specs: [{ spec: { case: "git", value: { remoteUri } } }] },
          })),
        });
        created += createdProjects.length;
        for (const { index, error } of failedProjects) {
          const line = chunk[index];
          if (line) failures.push({ ...line, error });
        }
      } catch (error) {
        const { sentence } = failureOf(error);
        failures.push(...chunk.map((line) => ({ ...line, error: sentence })));
      }
      done += chunk.length;
      setMade(created);
      setFailed([...failures]);
    }
    setProgress({ done, all: lines.length });
    // Keeps the failed lines, to be corrected and tried again.
    setText(failures.map(({ remoteUri }) => remoteUri).join("\n"));
    await queries.invalidateQueries();
  };
  return (
    <form className="stack" onSubmit={(event) => void start(event)}>
      <Textarea
        label="Repositories, one per line"
        description="Clone URLs, such as https://git.example.org/team/app.git. Empty lines and lines that begin with # are ignored."
        data-autofocus
        autosize
        minRows={6}
        maxRows={16}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={text}
        disabled={isBusy}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {progress && (
        <div role="status" className="stack">
          <Progress value={(100 * progress.done) / progress.all} aria-label="Progress of the import" />
          <p className="figures">
            {progress.done.toLocaleString()} of {progress.all.toLocaleString()} lines: {made.toLocaleString()}{" "}
            created, {failed.length.toLocaleString()} failed.
          </p>
        </div>
      )}
      {failed.length > 0 && (
        <ul className="import-failures" aria-label="Lines that failed">
          {failed.map(({ line, remoteUri, error }) => (
            <li key={line}>
              <span className="dim">Line {line}</span> <code>{remoteUri}</code>
              <div className="tone-failed">{error}</div>
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        <Button type="submit" loading={isBusy} disabled={lines.length === 0}>
          Import {lines.length.toLocaleString()} {lines.length === 1 ? "project" : "projects"}
        </Button>
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Close
        </Button>
      </div>
    </form>
  );
}
