import type { RecommendedEditors } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../identity/caller.ts";
import type { Policies } from "../policy/policies.ts";
import { policyDenied } from "../policy/policy-decision.ts";

/**
 * Requires that the role may create projects.
 * @throws PolicyDenied for everybody but administrators while members may not create projects
 */
export function requireProjectCreationAllowed(policies: Policies, role: Caller["role"]): void {
  if (policies.effective.membersCreateProjects || role === "administrator") return;
  const allowed = "administrators alone to create projects";
  throw policyDenied(policies, { fieldPath: "membersCreateProjects", allowed });
}

/**
 * Requires that the policies allow the editors that a project recommends, and their versions.
 * @throws PolicyDenied for the first editor, or the first version, that is not allowed
 */
export function requireEditorsAllowed(policies: Policies, { editors }: RecommendedEditors): void {
  const { allowedEditorIds, editorVersionRestrictions } = policies.effective;
  const requested = Object.keys(editors);
  if (allowedEditorIds.length > 0 && requested.some((editor) => !allowedEditorIds.includes(editor))) {
    const allowed = `only the editors ${allowedEditorIds.join(", ")}`;
    throw policyDenied(policies, { fieldPath: "allowedEditorIds", requested, allowed });
  }
  if (Object.keys(editorVersionRestrictions).length === 0) return;
  for (const [editor, { versions }] of Object.entries(editors)) {
    const permitted = Object.hasOwn(editorVersionRestrictions, editor)
      ? (editorVersionRestrictions[editor]?.allowedVersions ?? [])
      : [];
    if (versions.every((version) => permitted.some((each) => isWithin(version, each)))) continue;
    const allowed =
      permitted.length > 0
        ? `only the versions ${permitted.join(", ")} of ${editor}`
        : `the latest version of ${editor} alone, which is recommended by naming no version`;
    const fieldPath = "editorVersionRestrictions";
    throw policyDenied(policies, {
      fieldPath,
      requested: { [editor]: { allowedVersions: versions } },
      allowed,
    });
  }
}

/** Returns whether a version is the permitted major version, or one inside it. */
function isWithin(version: string, permitted: string): boolean {
  return version === permitted || version.startsWith(`${permitted}.`);
}
