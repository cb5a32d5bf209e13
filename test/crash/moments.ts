import {
  ReportProgressRequest_StepProgress_State as State,
  type WorkReport,
} from "#gen/runner/v1/work_service_pb.js";
import type { Gate } from "../harness/gate.ts";
import type { ScmHost } from "../harness/scm-host.ts";
import type { ServedRepository } from "../harness/served-repository.ts";
import type { HeldCall, ServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

/** The branch that every action pushes. */
export const BRANCH = "tidy";

/** Where actions can be held. */
export interface Places {
  readonly host: ScmHost;
  readonly proxy: ServerProxy;
  readonly gate: Gate;
}

/** An action to hold. */
export interface HeldAction {
  readonly repository: ServedRepository;
  readonly leaseId: string;
}

/**
 * A moment in the life of an action at which a process is killed. The action's steps are a task, a
 * pull request and a report.
 */
export interface Moment {
  /** Also the name of the repository whose action is held at this moment. */
  readonly name: string;
  /** True before the first command of an action, when its lease is not known. */
  readonly isEarly?: true;
  /**
   * True when the action is attempted again if its runner dies at this moment: the service does not
   * know that all steps are done.
   */
  readonly isRetried: boolean;
  hold(places: Places, action: HeldAction): HeldCall;
}

/** In the order in which an action reaches them. */
export const MOMENTS: readonly Moment[] = [
  {
    name: "cloning",
    isEarly: true,
    isRetried: true,
    hold: ({ host }, action) => atHost(host, action, "GET", ".git/info/refs?service=git-upload-pack"),
  },
  { name: "working", isRetried: true, hold: ({ gate }, action) => atGate(gate, action, "work") },
  {
    name: "pushing",
    isRetried: true,
    hold: ({ host }, action) => atHost(host, action, "GET", ".git/info/refs?service=git-receive-pack"),
  },
  {
    name: "opening",
    isRetried: true,
    hold: ({ host }, action) => atHost(host, action, "POST", "/pulls"),
  },
  { name: "reporting", isRetried: true, hold: ({ gate }, action) => atGate(gate, action, "report") },
  {
    name: "last-step-unheard",
    isRetried: true,
    hold: ({ proxy }, action) =>
      proxy.holdReport({ what: "progress", at: "request", fits: saysLastIsDone(action) }),
  },
  {
    name: "last-step-heard",
    isRetried: false,
    hold: ({ proxy }, action) =>
      proxy.holdReport({ what: "progress", at: "answer", fits: saysLastIsDone(action) }),
  },
  {
    name: "end-unheard",
    isRetried: false,
    hold: ({ proxy }, action) => proxy.holdReport({ what: "finish", at: "request", fits: ends(action) }),
  },
  {
    name: "end-heard",
    isRetried: false,
    hold: ({ proxy }, action) => proxy.holdReport({ what: "finish", at: "answer", fits: ends(action) }),
  },
];

/** The host has carried out the request but never responds to the runner. */
export const UNANSWERED_BY_HOST: readonly Moment[] = [
  {
    name: "push-unanswered",
    isRetried: true,
    hold({ host }, action) {
      const { reached, release } = atHost(host, action, "POST", ".git/git-receive-pack", "unanswered");
      const isDone = () => action.repository.find(BRANCH) !== undefined;
      return { reached: reached.then(() => happened(isDone)), release };
    },
  },
  {
    name: "opening-unanswered",
    isRetried: true,
    hold({ host }, action) {
      const { reached, release } = atHost(host, action, "POST", "/pulls", "unanswered");
      const isDone = () =>
        host.pullRequests().some(({ repository }) => repository === action.repository.path);
      return { reached: reached.then(() => happened(isDone)), release };
    },
  },
];

const saysLastIsDone =
  ({ leaseId }: HeldAction) =>
  ({ progress }: WorkReport) =>
    progress?.leaseId === leaseId &&
    progress.steps.some(({ stepIndex, state }) => stepIndex === 2 && state === State.DONE);

const ends =
  ({ leaseId }: HeldAction) =>
  ({ finish }: WorkReport) =>
    finish?.leaseId === leaseId;

const happened = (isDone: () => boolean) => until(isDone, (done) => done).then(() => undefined);

function atGate(gate: Gate, { repository }: HeldAction, part: string): HeldCall {
  const name = `${repository.name}-${part}`;
  gate.close(name);
  return { reached: gate.reached(name), release: () => gate.open(name) };
}

/**
 * Holds the requests whose target ends like this until they are released, or leaves them without a
 * response.
 */
function atHost(
  host: ScmHost,
  { repository }: HeldAction,
  method: string,
  end: string,
  fault?: "unanswered",
): HeldCall {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let [hasArrived, isReleased] = [false, false];
  host.fail(fault ?? { until: released.promise }, {
    times: Number.POSITIVE_INFINITY,
    when(req) {
      const isOfRepository = req.target.split("?", 1)[0]?.endsWith(`/${repository.path}${end}`) ?? false;
      const fits = req.method === method && req.target.endsWith(`/${repository.path}${end}`);
      hasArrived ||= fits;
      if (fits) arrived.resolve();
      // On a slow machine the runner gives up waiting, and asks what has become of its request.
      const asksAgain = fault !== undefined && hasArrived && isOfRepository;
      return (fits || asksAgain) && !isReleased;
    },
  });
  return {
    reached: arrived.promise,
    release() {
      isReleased = true;
      released.resolve();
    },
  };
}
