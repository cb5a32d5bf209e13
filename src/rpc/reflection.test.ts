import { createFileRegistry, type DescFile, fromBinary, hasOption } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { Health } from "#gen/grpc/health/v1/health_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "#gen/grpc/reflection/v1/reflection_pb.js";
import { reflectionService } from "./reflection.ts";
import { CONTRACT } from "./routes.ts";

const SERVICES = [...CONTRACT, Health, ServerReflection];
const client = createClient(
  ServerReflection,
  createRouterTransport(({ service }) => service(ServerReflection, reflectionService(SERVICES))),
);

type Question = ServerReflectionRequest["messageRequest"];
type Answer = ServerReflectionResponse["messageResponse"];

/** Returns the responses to requests that are sent in one stream. */
async function ask(...questions: Question[]): Promise<Answer[]> {
  const requests = (async function* () {
    for (const messageRequest of questions) yield { host: "here", messageRequest };
  })();
  const answers: Answer[] = [];
  for await (const response of client.serverReflectionInfo(requests)) {
    expect(response.validHost).toBe("here");
    expect(response.originalRequest?.messageRequest).toEqual(questions[answers.length]);
    answers.push(response.messageResponse);
  }
  expect(answers).toHaveLength(questions.length);
  return answers;
}

/** Returns the file in the response to a request; throws when the response is something else. */
async function fileOf(question: Question): Promise<FileDescriptorProto> {
  const [answer] = await ask(question);
  const [bytes, ...more] = answer?.case === "fileDescriptorResponse" ? answer.value.fileDescriptorProto : [];
  if (!bytes || more.length > 0) throw new Error(`no one file: ${JSON.stringify(answer)}`);
  return fromBinary(FileDescriptorProtoSchema, bytes);
}

const bySymbol = (value: string) => fileOf({ case: "fileContainingSymbol", value });
const byName = (value: string) => fileOf({ case: "fileByFilename", value });

/** Returns all files that a client finds when it starts with the services and follows the imports. */
async function learned(): Promise<Map<string, FileDescriptorProto>> {
  const files = new Map<string, FileDescriptorProto>();
  const waiting = SERVICES.map(({ file }) => file.proto.name);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (files.has(name)) continue;
    const file = await byName(name);
    files.set(name, file);
    waiting.push(...file.dependency);
  }
  return files;
}

describe("a client that asks the server for its contract", () => {
  test("receives every service, the ones around the contract too", async () => {
    const [answer] = await ask({ case: "listServices", value: "*" });
    expect(answer?.case === "listServicesResponse" && answer.value.service.map(({ name }) => name)).toEqual(
      SERVICES.map(({ typeName }) => typeName),
    );
  });

  test("finds every file that another imports, and with them can build the whole contract again", async () => {
    const files = await learned();
    const registry = createFileRegistry(
      // The registry requires imported files before those that import them.
      fromFiles([...files.values()]),
    );
    for (const { typeName, methods } of SERVICES) {
      expect(registry.getService(typeName)?.methods.map(({ name }) => name)).toEqual(
        methods.map(({ name }) => name),
      );
    }
  });

  test("gets the rules of the contract with it", async () => {
    const registry = createFileRegistry(fromFiles([...(await learned()).values()]));
    const projectId = registry.getMessage("service.v1.GetProjectRequest")?.field.projectId;
    expect(projectId && hasOption(projectId, fieldRules)).toBe(true);
  });

  test("finds the file of every service, operation, message, enumeration and extension by its full name", async () => {
    const files = new Set<DescFile>();
    const walk = (file: DescFile): void => {
      if (files.has(file)) return;
      files.add(file);
      file.dependencies.forEach(walk);
    };
    for (const { file } of SERVICES) walk(file);
    const symbols = [...files].flatMap((file) =>
      [...nestedTypes(file)].flatMap((type) => [
        [type.typeName, file.proto.name] as const,
        ...(type.kind === "service"
          ? type.methods.map((method) => [`${type.typeName}.${method.name}`, file.proto.name] as const)
          : []),
      ]),
    );
    const answers = await ask(
      ...symbols.map(([value]) => ({ case: "fileContainingSymbol", value }) as const),
    );
    const names = answers.map((answer) => {
      if (answer.case !== "fileDescriptorResponse") return answer.case;
      return fromBinary(FileDescriptorProtoSchema, answer.value.fileDescriptorProto[0] ?? new Uint8Array())
        .name;
    });
    expect(names).toEqual(symbols.map(([, name]) => name));
    expect(symbols.length).toBeGreaterThan(300);
  });

  test("finds a nested message and an operation", async () => {
    expect((await bySymbol("service.v1.Project.UsedBy")).name).toBe("service/v1/project.proto");
    expect((await bySymbol("service.v1.ProjectService.GetProject")).name).toBe(
      "service/v1/project_service.proto",
    );
    expect((await byName("google/protobuf/timestamp.proto")).package).toBe("google.protobuf");
  });

  test("finds extensions by what they extend and their number", async () => {
    const [numbers, file] = await ask(
      { case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" },
      extension("google.protobuf.FieldOptions", 1159),
    );
    expect(numbers?.case === "allExtensionNumbersResponse" && numbers.value).toMatchObject({
      baseTypeName: "google.protobuf.FieldOptions",
      extensionNumber: expect.arrayContaining([1159]),
    });
    expect(file?.case).toBe("fileDescriptorResponse");
  });

  test("learns that a type without extensions has none", async () => {
    const [answer] = await ask({ case: "allExtensionNumbersOfType", value: "service.v1.Project" });
    expect(answer?.case === "allExtensionNumbersResponse" && answer.value).toMatchObject({
      baseTypeName: "service.v1.Project",
      extensionNumber: [],
    });
  });

  test.each<Question>([
    { case: "fileByFilename", value: "service/v1/project" },
    { case: "fileByFilename", value: "" },
    { case: "fileContainingSymbol", value: "service.v1.Absent" },
    { case: "fileContainingSymbol", value: "service.v1" },
    { case: "allExtensionNumbersOfType", value: "service.v1.Absent" },
    extension("google.protobuf.FieldOptions", 1),
    extension("service.v1.Project", 1159),
  ])("receives not found, in the codes of gRPC, for %j", async (question) => {
    const [answer] = await ask(question);
    expect(answer?.case === "errorResponse" && answer.value.errorCode).toBe(5);
  });

  test("receives an error when it asks nothing, and may go on asking", async () => {
    const [nothing, services] = await ask({ case: undefined }, { case: "listServices", value: "" });
    expect(nothing?.case === "errorResponse" && nothing.value.errorCode).toBe(3);
    expect(services?.case).toBe("listServicesResponse");
  });
});

function extension(containingType: string, extensionNumber: number): Question {
  return {
    case: "fileContainingExtension",
    value: {
      $typeName: "grpc.reflection.v1.ExtensionRequest",
      containingType,
      extensionNumber,
    },
  };
}

/** Returns a set in which each file comes after the files that it imports. */
function fromFiles(files: readonly FileDescriptorProto[]) {
  const sorted: FileDescriptorProto[] = [];
  const put = (file: FileDescriptorProto): void => {
    if (sorted.includes(file)) return;
    for (const name of file.dependency) {
      const imported = files.find((each) => each.name === name);
      if (imported) put(imported);
    }
    sorted.push(file);
  };
  files.forEach(put);
  return { $typeName: FileDescriptorSetSchema.typeName, file: sorted };
}
