import type { Environment } from "#gen/service/v1/environment_pb.js";
import { isCompatibleInitializer } from "../../domain/project/prebuild.ts";
import { findReadyPrebuild } from "../../store/project/prebuild.ts";
import type { Reader, Scope } from "../../store/store.ts";

/** Returns the id of the prebuild from which an environment starts; empty when it starts from its initializer. */
export async function findUsablePrebuildId(
  db: Reader,
  scope: Scope,
  { metadata, spec }: Environment,
): Promise<string> {
  const projectId = metadata?.projectId;
  const environmentClassId = spec?.machine?.class;
  if (!projectId || !environmentClassId) return "";
  const ready = await findReadyPrebuild(db, scope, { projectId, environmentClassId });
  if (ready?.runnerId !== metadata.runnerId) return "";
  return isCompatibleInitializer(ready, spec?.content?.initializer) ? ready.id : "";
}
