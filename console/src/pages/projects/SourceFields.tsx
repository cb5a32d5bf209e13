import {
  type GitInitializer,
  GitInitializer_CloneTargetMode as Mode,
  type EnvironmentInitializer_Spec as Spec,
} from "#gen/service/v1/environment_pb.js";
import { ChoiceField, NumberField, PartBreach, TextField } from "../../parts/fields/fields.tsx";
import { emptySource, type SourceKind } from "./settings.ts";

const KINDS: readonly (readonly [SourceKind, string])[] = [
  ["git", "A git repository"],
  ["contextUrl", "A page: a repository, branch, issue or pull request"],
];

/** What to check out: the contract's value, and the label of the field for it. */
const TARGETS = [
  ["head", "The default branch", "", Mode.REMOTE_HEAD],
  ["branch", "A branch of the remote", "Branch", Mode.REMOTE_BRANCH],
  ["tag", "A tag of the remote", "Tag", Mode.REMOTE_TAG],
  ["commit", "A commit", "Hash of the commit", Mode.REMOTE_COMMIT],
  ["new", "A new branch from the default one", "Name of the new branch", Mode.LOCAL_BRANCH],
] as const;

interface SourceFieldsProps {
  /** The path of the source in the contract. */
  readonly path: string;
  readonly source: Spec;
  readonly onChange: (source: Spec) => void;
}

/** Edits one source of the content of environments. */
export function SourceFields({ path, source, onChange }: SourceFieldsProps) {
  const { spec } = source;
  return (
    <>
      <ChoiceField
        path={`${path}.spec`}
        label="Source type"
        value={spec.case ?? "git"}
        choices={KINDS}
        onChange={(kind) => onChange(emptySource(kind))}
      />
      <PartBreach path={path} />
      {spec.case === "contextUrl" && (
        <TextField
          path={`${path}.context_url.url`}
          label="Address of the page"
          value={spec.value.url}
          onChange={(url) => onChange({ ...source, spec: { ...spec, value: { ...spec.value, url } } })}
        />
      )}
      {spec.case === "git" && (
        <GitFields
          path={`${path}.git`}
          git={spec.value}
          onChange={(value) => onChange({ ...source, spec: { ...spec, value } })}
        />
      )}
    </>
  );
}

function GitFields({
  path,
  git,
  onChange,
}: {
  readonly path: string;
  readonly git: GitInitializer;
  readonly onChange: (git: GitInitializer) => void;
}) {
  const target = TARGETS.find(([, , , mode]) => mode === git.targetMode) ?? TARGETS[0];
  const [value, , targetLabel] = target;
  return (
    <>
      <TextField
        path={`${path}.remote_uri`}
        label="Repository URL"
        value={git.remoteUri}
        onChange={(remoteUri) => onChange({ ...git, remoteUri })}
      />
      <div className="field-row">
        <ChoiceField
          path={`${path}.target_mode`}
          label="Checkout"
          value={value}
          choices={TARGETS.map(([value, label]) => [value, label] as const)}
          onChange={(chosen) => {
            const [, , label, targetMode] = TARGETS.find(([each]) => each === chosen) ?? TARGETS[0];
            onChange({ ...git, targetMode, cloneTarget: label ? git.cloneTarget : "" });
          }}
        />
        {targetLabel && (
          <TextField
            path={`${path}.clone_target`}
            label={targetLabel}
            value={git.cloneTarget}
            onChange={(cloneTarget) => onChange({ ...git, cloneTarget })}
          />
        )}
      </div>
      <div className="field-row">
        <TextField
          path={`${path}.checkout_location`}
          label="Folder (empty: the runner chooses)"
          value={git.checkoutLocation}
          onChange={(checkoutLocation) => onChange({ ...git, checkoutLocation })}
        />
        <TextField
          path={`${path}.upstream_remote_uri`}
          label="Upstream repository (if it is a fork)"
          value={git.upstreamRemoteUri}
          onChange={(upstreamRemoteUri) => onChange({ ...git, upstreamRemoteUri })}
        />
        <NumberField
          path={`${path}.depth`}
          label="Commits to fetch (empty: all)"
          value={git.depth || undefined}
          onChange={(depth) => onChange({ ...git, depth: Math.trunc(depth ?? 0) })}
        />
      </div>
    </>
  );
}
