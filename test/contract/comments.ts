import type { DescEnum, DescEnumValue, DescField, DescFile, DescMessage } from "@bufbuild/protobuf";

/** The comment above a field or a member of an enum, as one line; empty when there is none. */
export function leadingComment(element: DescField | DescEnumValue): string {
  const path = pathOf(element).join();
  const location = fileOf(element).proto.sourceCodeInfo?.location.find((each) => each.path.join() === path);
  return (location?.leadingComments ?? "").replace(/\s+/g, " ").trim();
}

function fileOf(element: DescField | DescEnumValue): DescFile {
  if (element.kind === "field") return element.parent.file;
  return element.parent.file;
}

/** Where the source info of a file keeps an element: field numbers of the descriptors, and indexes. */
function pathOf(element: DescMessage | DescEnum | DescField | DescEnumValue): number[] {
  if (element.kind === "field") return [...pathOf(element.parent), 2, index(element.parent.proto.field, element)];
  if (element.kind === "enum_value")
    return [...pathOf(element.parent), 2, index(element.parent.proto.value, element)];
  const { parent, file } = element;
  if (element.kind === "message") {
    return parent
      ? [...pathOf(parent), 3, index(parent.proto.nestedType, element)]
      : [4, index(file.proto.messageType, element)];
  }
  return parent
    ? [...pathOf(parent), 4, index(parent.proto.enumType, element)]
    : [5, index(file.proto.enumType, element)];
}

function index(protos: readonly unknown[], element: { readonly proto: unknown }): number {
  return protos.indexOf(element.proto);
}
