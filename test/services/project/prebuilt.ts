import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequestSchema,
  FinishWorkRequest_Outcome as Outcome,
} from "#gen/runner/v1/work_service_pb.js";
import type { CreateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { createDuePrebuilds, stopTimedOutPrebuilds } from "../../../src/jobs/prebuilds.ts";
import { handlerOf } from "../../../src/services/access/work-handlers.ts";
import { claim } from "../../../src/services/runner/claim.ts";
import { findPrebuilds } from "../../../src/store/project/prebuild.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { findLease, type StoredLease } from "../../../src/store/runner/work-lease.ts";
import { type Scope, SYSTEM, type WriteTransaction } from "../../../src/store/store.ts";
import { DAY_MS, MINUTE_MS, openTestStore, START_MS } from "../../harness/test-store.ts";
import { gitSpec, servicesOf } from "../services.ts";

export const SECOND_MS = 1_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const LEASE_MS = 30 * SECOND_MS;

/** The source of the projects. */
export const REMOTE = "https://git.example.org/team/ship.git";

export type Configuration = NonNullable<
  MessageInitShape<typeof CreateProjectRequestSchema>["prebuildConfiguration"]
>;

/** Prebuilds once a day at an hour. */
export function atHour(hourUtc: number) {
  return { trigger: { case: "dailySchedule", value: { hourUtc } } } as const;
}

/** How a work is named here. */
export interface Leased {
  readonly leaseId: string;
}

type Content<C> = Extract<Work["work"], { case: C }>["value"];

/** An organization with a runner of one class, and what prebuilds need to go their way. */
export async function openPrebuilt() {
  const made = openTestStore();
  const { store, clock } = made;
  const caller = await made.createOrganization("harbour");
  const own = servicesOf(made, caller);
  const { runnerId, classId } = await own.runnerWithClass("north");

  /** Moves the clock and lets the jobs run that look at it. */
  async function passTo(now: number): Promise<void> {
    clock.now = now;
    await createDuePrebuilds(store, now);
    await stopTimedOutPrebuilds(store, now);
    await endExpiredLeases(store, now);
  }

  /** The next work of the runner; undefined without any. */
  const lease = (): Promise<Work | undefined> =>
    store.write(SYSTEM, "test", async (tx) => {
      const { organizationId } = caller;
      const runnerIds = [runnerId] as const;
      const claimant = { organizationId, runnerIds, kinds: [], environmentClassIds: [classId], keeps: 0 };
      const { keys } = made;
      const most = { maxLeases: 1, maxBytes: Number.POSITIVE_INFINITY };
      const asked = {
        claimant,
        runnerId,
        ...most,
        instanceId: "",
        leaseMs: LEASE_MS,
        keys,
        handlerOf,
        onPartFailure: () => undefined,
        onUnusableWork: () => undefined,
      };
      return (await claim(tx, caller, asked)).works[0];
    });

  /** Does something as the operations on a lease do it. */
  const underLease = <T>(
    { leaseId }: Leased,
    act: (tx: WriteTransaction, scope: Scope, lease: StoredLease) => Promise<T>,
  ): Promise<T> =>
    store.write(SYSTEM, "test", async (tx) => {
      const held = await findLease(tx.db, caller, leaseId);
      if (!held) throw new Error("the lease is lost");
      return act(tx, caller, held);
    });

  const prebuilds = () => findPrebuilds(store.reader, caller, {});

  return {
    ...made,
    caller,
    own,
    runnerId,
    classId,
    lease,
    underLease,
    passTo,
    pass: (ms: number) => passTo(clock.now + ms),
    /** Moves on to an hour of a day from the first on, when all that is due in the hours before has been made. */
    passToDay: (day: number, hour = 4) => passTo(START_MS + day * DAY_MS + hour * HOUR_MS),
    /** A project whose prebuilds are due at three o'clock, of the one class; its id. */
    async project(more: Configuration = {}): Promise<string> {
      const base = { enabled: true, environmentClassIds: [classId], trigger: atHour(3) };
      const { project } = await own.projects.createProject({
        initializer: { specs: [gitSpec(REMOTE)] },
        devcontainerFilePath: "dev/devcontainer.json",
        automationsFilePath: "dev/automations.yaml",
        prebuildConfiguration: { ...base, ...more } as Configuration,
      });
      return project?.id ?? "";
    },
    /** The latest due first. */
    prebuilds,
    states: async () => (await prebuilds()).map(({ state }) => state),
    /** The next work of the runner, which must be of a kind. */
    async leaseOf<C extends NonNullable<Work["work"]["case"]>>(kind: C) {
      const work = await lease();
      if (work?.work.case !== kind) throw new Error(`there is ${work?.work.case} to do`);
      return { leaseId: work.leaseId, work, content: work.work.value as Content<C> };
    },
    finish: (leased: Leased, outcome = Outcome.DONE, message = "") =>
      underLease(leased, async (tx, scope, held) => {
        const finished = create(FinishWorkRequestSchema, {
          outcome,
          ...(message && { failure: { message } }),
        });
        await handlerOf(held.kind).end(tx, scope, held, { kind: "finished", outcome: finished });
      }),
    /** Lets the newest lease run out. */
    lose: () => passTo(clock.now + LEASE_MS),
    isToStop: ({ leaseId }: Leased) => underLease({ leaseId }, async (_tx, _scope, held) => held.stop === 1),
    /** The kinds of all work that has not ended. */
    openWork: async () =>
      (await builderOf(store.reader).selectFrom("work").select("kind").orderBy("id").execute()).map(
        ({ kind }) => kind,
      ),
    /** The failures that the audit trail tells of prebuilds, in their order. */
    async failures(): Promise<string[]> {
      const { audit } = await made.history(caller);
      return audit
        .filter(({ subject_type }) => subject_type === "prebuild")
        .map(({ diff }) => JSON.parse(diff).failure?.[1] ?? "")
        .filter((failure) => failure !== "");
    },
  };
}

export type Prebuilt = Awaited<ReturnType<typeof openPrebuilt>>;
