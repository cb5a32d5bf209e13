import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { AdmissionLevel, EnvironmentSchema, EnvironmentSpecSchema } from "#gen/service/v1/environment_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { effectivePolicies, type Policies } from "../policy/policies.ts";
import type { PolicyDenied } from "../policy/policy-decision.ts";
import { requireEnvironmentQuota, requireRunningQuota } from "./environment-limit.ts";
import {
  applyPoliciesToSpec,
  isPastLifetime,
  type NewEnvironmentFacts,
  requireAdmissionAllowed,
  requireLifetimeAllowsStart,
  withLifetime,
} from "./environment-policy.ts";

function policies(set: MessageInitShape<typeof OrganizationPoliciesSchema>): Policies {
  return effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, set),
    origins: {},
  });
}

const spec = (init: MessageInitShape<typeof EnvironmentSpecSchema> = {}) =>
  create(EnvironmentSpecSchema, init);
const WITHOUT_PROJECT: NewEnvironmentFacts = { role: "member", fromProject: false, local: false };

/** Returns the field of the policy that denies; undefined when none does. */
function denier(act: () => unknown): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as PolicyDenied).decision.fieldPath;
  }
}

describe("the spec of a new environment", () => {
  test("is left as it is while nothing is set", () => {
    const requested = spec({
      timeout: { disconnected: { seconds: 0n } },
      admission: AdmissionLevel.EVERYONE,
    });
    expect(applyPoliciesToSpec(policies({}), requested, { ...WITHOUT_PROJECT, local: true })).toEqual(
      requested,
    );
  });

  test("is not changed in the request itself", () => {
    const requested = spec();
    const under = applyPoliciesToSpec(
      policies({ maximumEnvironmentTimeout: { seconds: 3600n }, securityPolicyId: "p" }),
      requested,
      WITHOUT_PROJECT,
    );
    expect(under).toMatchObject({ timeout: { disconnected: { seconds: 3600n } }, securityPolicyId: "p" });
    expect(requested).toEqual(spec());
  });

  test.each(["member", "service_account"] as const)("of a %s is held to what is for members", (role) => {
    const from = (surroundings: Partial<NewEnvironmentFacts>) => ({
      ...WITHOUT_PROJECT,
      role,
      ...surroundings,
    });
    const required = policies({ membersRequireProjects: true });
    expect(denier(() => applyPoliciesToSpec(required, spec(), from({})))).toBe("membersRequireProjects");
    expect(denier(() => applyPoliciesToSpec(required, spec(), from({ fromProject: true })))).toBeUndefined();
    const scratch = policies({ disableFromScratch: true });
    expect(denier(() => applyPoliciesToSpec(scratch, undefined, from({})))).toBe("disableFromScratch");
  });

  test("of an administrator is not, and is held to all the rest", () => {
    const all = policies({
      membersRequireProjects: true,
      disableFromScratch: true,
      allowLocalRunners: false,
      portSharingDisabled: true,
      maximumEnvironmentTimeout: { seconds: 1800n },
      securityPolicyId: "p",
    });
    const by = { ...WITHOUT_PROJECT, role: "administrator" } as const;
    const denied = (init: MessageInitShape<typeof EnvironmentSpecSchema>, local = false) =>
      denier(() => applyPoliciesToSpec(all, spec(init), { ...by, local }));
    expect(denied({})).toBeUndefined();
    expect(denied({}, true)).toBe("allowLocalRunners");
    expect(denied({ admission: AdmissionLevel.ORGANIZATION })).toBe("portSharingDisabled");
    expect(denied({ timeout: { disconnected: { seconds: 0n } } })).toBe("maximumEnvironmentTimeout");
    expect(denied({ timeout: { disconnected: { seconds: 1800n, nanos: 1 } } })).toBe(
      "maximumEnvironmentTimeout",
    );
    expect(denied({ timeout: { disconnected: { seconds: 1800n } } })).toBeUndefined();
    expect(denied({ securityPolicyId: "q" })).toBe("securityPolicyId");
    expect(denied({ securityPolicyId: "p" })).toBeUndefined();
  });
});

describe("admission", () => {
  const { UNSPECIFIED, OWNER_ONLY, CREATOR_ONLY, ORGANIZATION, EVERYONE } = AdmissionLevel;
  const all = [UNSPECIFIED, OWNER_ONLY, CREATOR_ONLY, ORGANIZATION, EVERYONE];
  const allowed = (set: MessageInitShape<typeof OrganizationPoliciesSchema>) =>
    all.filter((level) => denier(() => requireAdmissionAllowed(policies(set), level)) === undefined);

  test("opens no wider than the cap, and no cap caps nothing", () => {
    expect(allowed({})).toEqual(all);
    expect(allowed({ maxPortAdmissionLevel: EVERYONE })).toEqual(all);
    expect(allowed({ maxPortAdmissionLevel: ORGANIZATION })).toEqual([
      UNSPECIFIED,
      OWNER_ONLY,
      CREATOR_ONLY,
      ORGANIZATION,
    ]);
    for (const cap of [OWNER_ONLY, CREATOR_ONLY]) {
      expect(allowed({ maxPortAdmissionLevel: cap })).toEqual([UNSPECIFIED, OWNER_ONLY, CREATOR_ONLY]);
    }
  });

  test("is the creator's own where sharing is disabled, whatever the cap", () => {
    for (const cap of all) {
      const set = { portSharingDisabled: true, maxPortAdmissionLevel: cap };
      expect(allowed(set)).toEqual([UNSPECIFIED, OWNER_ONLY, CREATOR_ONLY]);
    }
  });
});

describe("a lifetime", () => {
  const START = Date.UTC(2026, 0, 1);
  const environment = (lockdown?: number, started?: number) =>
    create(EnvironmentSchema, {
      metadata: {
        createdAt: timestampFromMs(START),
        ...(lockdown !== undefined && { lockdownAt: timestampFromMs(lockdown) }),
        ...(started !== undefined && { lastStartedAt: timestampFromMs(started) }),
      },
    });

  test("ends that long after the creation", () => {
    const { metadata } = withLifetime(
      policies({ maximumEnvironmentLifetime: { seconds: 60n, nanos: 5_000_000 } }),
      environment(),
    );
    expect(metadata?.lockdownAt && timestampMs(metadata.lockdownAt)).toBe(START + 60_005);
  });

  test.each([{}, { maximumEnvironmentLifetime: { seconds: 0n } }])("is without end for %j", (set) => {
    expect(withLifetime(policies(set as never), environment()).metadata?.lockdownAt).toBeUndefined();
  });

  test("forbids a start from its end on where it is strict", () => {
    const strict = policies({ maximumEnvironmentLifetimeStrict: true });
    const at = (now: number) =>
      denier(() => requireLifetimeAllowsStart(strict, environment(START + 10), now));
    expect([at(START + 9), at(START + 10)]).toEqual([undefined, "maximumEnvironmentLifetimeStrict"]);
    expect(denier(() => requireLifetimeAllowsStart(strict, environment(), START + 10))).toBeUndefined();
    expect(
      denier(() => requireLifetimeAllowsStart(policies({}), environment(START), START + 10)),
    ).toBeUndefined();
  });

  test("has been outlived from its end on, unless there was a start since", () => {
    expect(isPastLifetime(environment(START + 10), START + 9)).toBe(false);
    expect(isPastLifetime(environment(START + 10), START + 10)).toBe(true);
    expect(isPastLifetime(environment(START + 10, START + 9), START + 10)).toBe(true);
    expect(isPastLifetime(environment(START + 10, START + 10), START + 20)).toBe(false);
    expect(isPastLifetime(environment(), START + 10)).toBe(false);
  });
});

describe("the number of a user's environments", () => {
  const quota = (all: bigint, running: bigint) =>
    policies({ maximumEnvironmentsPerUser: all, maximumRunningEnvironmentsPerUser: running });

  test("is limited to the maximum itself, and 0 limits nothing", () => {
    const denied = (limit: bigint, count: number) => [
      denier(() => requireEnvironmentQuota(quota(limit, 0n), { all: count, running: 0 })),
      denier(() => requireRunningQuota(quota(0n, limit), { all: 0, running: count })),
    ];
    const both = ["maximumEnvironmentsPerUser", "maximumRunningEnvironmentsPerUser"];
    const neither = [undefined, undefined];
    expect(denied(0n, 1_000_000)).toEqual(neither);
    expect(denied(3n, 2)).toEqual(neither);
    expect(denied(3n, 3)).toEqual(both);
    expect(denied(3n, 4)).toEqual(both);
    expect(denied(9_223_372_036_854_775_807n, 1_000_000)).toEqual(neither);
  });
});

describe("a decision", () => {
  const refused = (origins: Policies["origins"]): PolicyDenied => {
    const { effective } = policies({ maximumEnvironmentsPerUser: 2n });
    try {
      requireEnvironmentQuota({ effective, origins }, { all: 2, running: 0 });
    } catch (error) {
      return error as PolicyDenied;
    }
    throw new Error("nothing was refused");
  };

  test("tells value, request and what would have been allowed, in the form of the policies' JSON", () => {
    const { decision, message, metadata } = refused({});
    expect(decision).toMatchObject({
      policy: "OrganizationPolicies",
      fieldPath: "maximumEnvironmentsPerUser",
      valueInForce: '"2"',
      valueAsked: '"3"',
      allowed: "at most 2 environments of one user",
    });
    expect([decision.setBy, decision.setAt]).toEqual([undefined, undefined]);
    expect(metadata).toEqual({ policy: "OrganizationPolicies", field_path: "maximumEnvironmentsPerUser" });
    expect(message).toBe(
      "the organization's policy maximumEnvironmentsPerUser forbids this; it allows at most 2 environments of one user",
    );
  });

  test("tells who set the value and when", () => {
    const origin = { id: "alice", principal: Principal.USER, at: 1_700_000_000_123 };
    const { setBy, setAt } = refused({ maximumEnvironmentsPerUser: origin }).decision;
    expect(setBy).toMatchObject({ id: "alice", principal: Principal.USER });
    expect(setAt && timestampMs(setAt)).toBe(1_700_000_000_123);
  });
});
