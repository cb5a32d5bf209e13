import type { DescEnum, DescEnumValue, DescField, DescMessage } from "@bufbuild/protobuf";

/** Returns the comment above a field or an enum value as one line; empty when there is none. */
export function leadingComment(element: DescField | DescEnumValue): string {
  const path = pathOf(element).join();
  const locations = element.parent.file.proto.sourceCodeInfo?.location ?? [];
  const comment = locations.find((each) => each.path.join() === path)?.leadingComments ?? "";
  return comment.replace(/\s+/g, " ").trim();
}

/** Returns the path of an element in a file's source info: field numbers of descriptor.proto, and indexes. */
function pathOf(element: DescMessage | DescEnum | DescField | DescEnumValue): number[] {
  const { proto } = element;
  const place = (above: readonly number[], field: number, siblings: readonly unknown[]) => [
    ...above,
    field,
    siblings.indexOf(proto),
  ];
  switch (element.kind) {
    case "field":
      return place(pathOf(element.parent), 2, element.parent.proto.field);
    case "enum_value":
      return place(pathOf(element.parent), 2, element.parent.proto.value);
    case "message":
      return element.parent
        ? place(pathOf(element.parent), 3, element.parent.proto.nestedType)
        : place([], 4, element.file.proto.messageType);
    case "enum":
      return element.parent
        ? place(pathOf(element.parent), 4, element.parent.proto.enumType)
        : place([], 5, element.file.proto.enumType);
  }
}
