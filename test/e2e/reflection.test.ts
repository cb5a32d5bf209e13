import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type ClientDuplexStream, credentials, Metadata, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { packageOf } from "../harness/call-stream.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { everyOperation } from "./every-operation.ts";
import { bufCurl } from "./speak/buf-curl.ts";
import { loadService } from "./speak/grpc-js.ts";

/** What proto-loader makes of a reflection answer; the member that is set is named. */
interface ReflectionAnswer {
  readonly messageResponse: string;
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] };
  readonly allExtensionNumbersResponse?: { readonly extensionNumber: readonly number[] };
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly errorResponse?: { readonly errorCode: number };
}

interface ReflectionClient {
  serverReflectionInfo(metadata: Metadata): ClientDuplexStream<object, ReflectionAnswer>;
}

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** Asks all questions on one stream; the answers in order, or the code that ended it. */
function ask(questions: readonly object[], token = server.token): Promise<ReflectionAnswer[] | number> {
  const ServerReflection = loadService<ReflectionClient>(
    "grpc/reflection/v1/reflection.proto",
    "grpc.reflection.v1.ServerReflection",
  );
  const client = new ServerReflection(`127.0.0.1:${server.port}`, credentials.createInsecure());
  const metadata = new Metadata();
  if (token) metadata.set("authorization", `Bearer ${token}`);
  return new Promise<ReflectionAnswer[] | number>((resolve) => {
    const answers: ReflectionAnswer[] = [];
    const stream = client.serverReflectionInfo(metadata);
    stream
      .on("data", (answer: ReflectionAnswer) => answers.push(answer))
      .on("error", (error: { code: number }) => resolve(error.code))
      .on("end", () => resolve(answers));
    for (const question of questions) stream.write(question);
    stream.end();
  }).finally(() => client.close());
}

async function answered(...questions: readonly object[]): Promise<ReflectionAnswer[]> {
  const answers = await ask(questions);
  if (typeof answers === "number") throw new Error(`the stream ended with ${answers}`);
  return answers;
}

const fileNames = (answer: ReflectionAnswer | undefined) =>
  answer?.fileDescriptorResponse?.fileDescriptorProto.map(
    (bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name,
  );

describe("reflection", () => {
  test("lists every operation of the contract to buf curl", async () => {
    const run = await bufCurl([
      ...["--reflect-header", `Authorization: Bearer ${server.token}`],
      ...["--http2-prior-knowledge", "--list-methods", server.url],
    ]);
    const expected = [
      "grpc.health.v1.Health/Check",
      "grpc.health.v1.Health/Watch",
      "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      ...everyOperation().map(([name]) => `${packageOf(name)}.${name}`),
    ];
    expect([run.code, run.stdout.trim().split("\n").toSorted()]).toEqual([0, expected.toSorted()]);
  });

  test("gives files by name, by every kind of symbol, and by extension", async () => {
    const answers = await answered(
      { fileByFilename: "service/v1/project.proto" },
      { fileContainingSymbol: "service.v1.ProjectService" },
      { fileContainingSymbol: "service.v1.ProjectService.GetProject" },
      { fileContainingSymbol: "service.v1.Project.UsedBy" },
      { fileContainingSymbol: "service.v1.ProjectPhase" },
      { fileContainingExtension: { containingType: "google.protobuf.FieldOptions", extensionNumber: 1159 } },
      { allExtensionNumbersOfType: "google.protobuf.FieldOptions" },
    );
    expect(answers.slice(0, 6).map(fileNames)).toEqual([
      ["service/v1/project.proto"],
      ["service/v1/project_service.proto"],
      ["service/v1/project_service.proto"],
      ["service/v1/project.proto"],
      ["service/v1/project.proto"],
      ["buf/validate/validate.proto"],
    ]);
    expect(answers[6]?.allExtensionNumbersResponse?.extensionNumber).toContain(1159);
  });

  test("gives every file that another one imports", async () => {
    const seen = new Set<string>();
    const next = ["service/v1/project_service.proto"];
    for (let name = next.pop(); name !== undefined; name = next.pop()) {
      if (seen.has(name)) continue;
      seen.add(name);
      const [answer] = await answered({ fileByFilename: name });
      const [bytes] = answer?.fileDescriptorResponse?.fileDescriptorProto ?? [];
      expect([name, bytes === undefined]).toEqual([name, false]);
      next.push(...fromBinary(FileDescriptorProtoSchema, bytes ?? Buffer.alloc(0)).dependency);
    }
    expect([...seen]).toContain("google/protobuf/descriptor.proto");
  });

  test("answers a name that nobody has, and goes on", async () => {
    const [nothing, empty, list] = await answered(
      { fileContainingSymbol: "service.v1.Nothing" },
      {},
      { listServices: "" },
    );
    expect(nothing?.errorResponse?.errorCode).toBe(status.NOT_FOUND);
    expect(empty?.errorResponse?.errorCode).toBe(status.INVALID_ARGUMENT);
    expect(list?.listServicesResponse?.service.map(({ name }) => name)).toContain(
      "service.v1.ProjectService",
    );
  });

  test("is for callers with a token only", async () => {
    expect(await ask([{ listServices: "" }], "")).toBe(status.UNAUTHENTICATED);
  });
});
