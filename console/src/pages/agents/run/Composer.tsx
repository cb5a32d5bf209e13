import { useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect, Textarea } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { AgentMode } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { keepTyped, readTyped, useKeptText } from "../../../api/typed.ts";
import { Icon } from "../../../parts/Icon.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { MODES } from "../run-state.ts";
import { IMAGE_TYPES, type Image, imagesOf, keepImages, keptImages, partsOf } from "./images.ts";
import { refreshInputs } from "./use-run.ts";

interface ComposerProps {
  readonly runId: string;
  /** True for a stopped run, which the next message resumes. */
  readonly isStopped: boolean;
}

/** Name under which the tab keeps the text until it is sent. */
const draftName = (runId: string) => `draft ${runId}`;

/** The field for the next message to the agent, with images and the mode of the turn; always visible. */
export function Composer({ runId, isStopped }: ComposerProps) {
  const navigate = useNavigate();
  const [text, setText] = useKeptText(draftName(runId));
  const [images, setImages] = useState(() => keptImages(runId));
  const [areKept, setAreKept] = useState(true);
  const [problem, setProblem] = useState("");
  const [mode, setMode] = useState(AgentMode.UNSPECIFIED);
  useEffect(() => setAreKept(keepImages(runId, images)), [runId, images]);
  const isLeft = useRef(false);
  useEffect(() => {
    isLeft.current = false;
    return () => {
      isLeft.current = true;
    };
  }, []);
  // When somebody left the page before the response, the tab must not keep the sent message as unsent.
  const forget = () => {
    if (!isLeft.current || (readTyped(draftName(runId)) ?? "") !== text) return;
    keepTyped(draftName(runId), "");
    keepImages(runId, []);
  };
  // Clears what was sent, but keeps what was typed or added in the meantime.
  const clear = () => {
    setText((now) => (now === text ? "" : now));
    setImages((now) => (now === images ? [] : now));
    setMode((now) => (now === mode ? AgentMode.UNSPECIFIED : now));
    setProblem("");
  };
  const send = useMutation(AgentService.method.sendToAgentExecution, {
    // The next message waits for this response, but not until the queue is read as well.
    onSettled: () => void refreshInputs(runId),
  });
  const resume = useMutation(AgentService.method.startAgent);
  const isBusy = send.isPending || resume.isPending;
  const isEmpty = text.trim() === "" && images.length === 0;
  const submit = () => {
    if (isEmpty || isBusy) return;
    const userInput = { inputs: partsOf(text, images) };
    // Callbacks are passed with the call: those of the mutation would use the newest text.
    if (isStopped) {
      const resumed = resume.mutateAsync(
        { resumeFrom: runId, userInput, mode },
        {
          onSuccess({ agentExecutionId }) {
            clear();
            void navigate({ to: "/agents/$runId", params: { runId: agentExecutionId } });
          },
        },
      );
      return void resumed.then(forget, () => undefined);
    }
    const sent = send.mutateAsync(
      {
        agentExecutionId: runId,
        input: { case: "userInput", value: userInput },
        ...(mode !== AgentMode.UNSPECIFIED && { turnOptions: { modes: [mode] } }),
      },
      { onSuccess: clear },
    );
    void sent.then(forget, () => undefined);
  };
  const add = async (files: readonly File[]) => {
    const added = await imagesOf(files, images.length);
    setImages((before) => [...before, ...added.images]);
    setProblem(added.problem);
  };
  return (
    <form
      className="composer"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes("Files")) event.preventDefault();
      }}
      onDrop={(event) => {
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        void add([...event.dataTransfer.files]);
      }}
    >
      <Problem error={send.error ?? resume.error} />
      {problem !== "" && (
        <p className="bar bar-asks" role="status">
          {problem}
        </p>
      )}
      <Textarea
        aria-label="Message to the agent"
        placeholder={isStopped ? "Resume the run with a message" : "Message to the agent"}
        autosize
        minRows={2}
        maxRows={12}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onPaste={(event) => {
          const files = [...event.clipboardData.files];
          if (files.length > 0) void add(files);
        }}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      <Images
        images={images}
        onRemove={(image) => setImages((before) => before.filter((each) => each !== image))}
      />
      {!areKept && (
        <p className="bar bar-asks" role="status">
          The images are too large for this tab to keep: if you reload the page before sending, they are lost.
          The text is kept.
        </p>
      )}
      <div className="row composer-foot">
        <span className="row">
          <AddImages onAdd={(files) => void add(files)} />
          <NativeSelect
            size="xs"
            aria-label="Mode of the turn"
            value={String(mode)}
            onChange={(event) => setMode(Number(event.currentTarget.value))}
            data={[
              { value: String(AgentMode.UNSPECIFIED), label: "Same mode as before" },
              ...MODES.map(([value, label]) => ({ value: String(value), label })),
            ]}
          />
          <span className="dim small extra">Ctrl+Enter sends it.</span>
        </span>
        <Button type="submit" size="xs" loading={isBusy} disabled={isEmpty}>
          {isStopped ? "Resume" : "Send"}
        </Button>
      </div>
    </form>
  );
}

/** Opens a file dialog; images can also be pasted and dropped. */
function AddImages({ onAdd }: { readonly onAdd: (files: File[]) => void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        leftSection={<Icon name="plus" size={14} />}
        onClick={() => field.current?.click()}
      >
        Image
      </Button>
      <input
        ref={field}
        type="file"
        accept={IMAGE_TYPES.join(",")}
        multiple
        hidden
        aria-label="Images to send"
        onChange={({ currentTarget }) => {
          onAdd([...(currentTarget.files ?? [])]);
          currentTarget.value = "";
        }}
      />
    </>
  );
}

function Images({
  images,
  onRemove,
}: {
  readonly images: readonly Image[];
  readonly onRemove: (image: Image) => void;
}) {
  if (images.length === 0) return null;
  return (
    <ul className="images" aria-label="Images of the message">
      {images.map((image) => (
        <li key={image.address}>
          <img src={image.address} alt={image.name} />
          <Button variant="subtle" size="compact-xs" onClick={() => onRemove(image)}>
            Remove {image.name}
          </Button>
        </li>
      ))}
    </ul>
  );
}
