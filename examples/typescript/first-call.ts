/**
 * A first call with a generated client. In this folder:
 *
 *     npx buf generate
 *     TOKEN=cr_pat_... npx node first-call.ts [address]
 *
 * Creates three projects in one call, one of them invalid on purpose, lists them
 * page by page, and handles an error by its reason.
 */
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ErrorDetailSchema, ErrorReason } from "./gen/service/v1/error_reason_pb.js";
import { ProjectService } from "./gen/service/v1/project_service_pb.js";

const address = process.argv[2] ?? "http://127.0.0.1:8080";

const withToken: Interceptor = (next) => (req) => {
  req.header.set("Authorization", `Bearer ${process.env.TOKEN}`);
  return next(req);
};

const transport = createConnectTransport({
  baseUrl: `${address}/api`,
  httpVersion: "1.1",
  defaultTimeoutMs: 5000,
  interceptors: [withToken],
});
const projects = createClient(ProjectService, transport);

/** Yields every project with this text in its name, page after page, in the order of creation. */
async function* projectsFound(search: string) {
  let token = "";
  do {
    const page = await projects.listProjects({
      filter: { search },
      sort: { field: "id" },
      pagination: { pageSize: 1, token },
    });
    yield* page.projects;
    token = page.pagination?.nextToken ?? "";
  } while (token !== "");
}

function git(remoteUri: string) {
  return { specs: [{ spec: { case: "git" as const, value: { remoteUri } } }] };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const api = { initializer: git("https://git.example.org/team/first-call-api.git") };
const web = { initializer: git("https://git.example.org/team/first-call-web.git") };
const bad = { ...web, name: "first-call-bad", devcontainerFilePath: "/absolute" };

const created = await projects.createProjects({ projects: [api, bad, web] });
print(`created: ${created.createdProjects.map(({ metadata }) => metadata?.name).join(", ")}`);
for (const { index, name, error } of created.failedProjects) {
  print(`failed: element ${index}, ${name}: ${error}`);
}

const found: (string | undefined)[] = [];
for await (const { metadata } of projectsFound("first-call")) found.push(metadata?.name);
print(`found: ${found.join(", ")}`);

try {
  await projects.getProject({ projectId: "00000000-0000-7000-8000-000000000000" });
} catch (thrown) {
  const error = ConnectError.from(thrown);
  const reason = error.findDetails(ErrorDetailSchema)[0]?.reason;
  if (reason !== ErrorReason.NOT_FOUND) throw error;
  print(`absent: ${Code[error.code]}, ${error.rawMessage}`);
}
