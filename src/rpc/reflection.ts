import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type { ServerReflection, ServerReflectionRequest } from "#gen/grpc/reflection/v1/reflection_pb.js";

/**
 * Creates the gRPC reflection service, from which generic clients read the
 * contract: files by name, by symbol, or by extension.
 */
export function reflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const index = indexFiles(services);
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: responseTo(request, index, services),
        };
      }
    },
  };
}

interface Index {
  readonly byName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
  /** The files of extensions, by the extended message and the extension number. */
  readonly byExtendee: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
}

function responseTo(
  { messageRequest }: ServerReflectionRequest,
  index: Index,
  services: readonly DescService[],
) {
  switch (messageRequest.case) {
    case "fileByFilename":
      return fileResponse(index.byName.get(messageRequest.value));
    case "fileContainingSymbol":
      return fileResponse(index.bySymbol.get(messageRequest.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      return fileResponse(index.byExtendee.get(containingType)?.get(extensionNumber));
    }
    case "allExtensionNumbersOfType": {
      const numbers = index.byExtendee.get(messageRequest.value);
      if (!numbers && !index.bySymbol.has(messageRequest.value)) return notFound;
      const extensionNumber = [...(numbers?.keys() ?? [])];
      const value = { baseTypeName: messageRequest.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value } as const;
    }
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      } as const;
    default:
      return {
        case: "errorResponse",
        value: { errorCode: Code.InvalidArgument, errorMessage: "the request asks nothing" },
      } as const;
  }
}

const notFound = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound as number, errorMessage: "the server knows nothing of that name" },
} as const;

function fileResponse(file: DescFile | undefined) {
  if (!file) return notFound;
  const fileDescriptorProto = [toBinary(FileDescriptorProtoSchema, file.proto)];
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } } as const;
}

function indexFiles(services: readonly DescService[]): Index {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const byExtendee = new Map<string, Map<number, DescFile>>();
  const add = (file: DescFile): void => {
    // The generated names of files lack the file extension.
    const name = file.proto.name;
    if (byName.has(name)) return;
    byName.set(name, file);
    for (const type of nestedTypes(file)) {
      bySymbol.set(type.typeName, file);
      if (type.kind === "service") {
        for (const method of type.methods) bySymbol.set(`${type.typeName}.${method.name}`, file);
      } else if (type.kind === "extension") {
        const numbers = byExtendee.get(type.extendee.typeName) ?? new Map<number, DescFile>();
        byExtendee.set(type.extendee.typeName, numbers.set(type.number, file));
      }
    }
    file.dependencies.forEach(add);
  };
  for (const { file } of services) add(file);
  return { byName, bySymbol, byExtendee };
}
