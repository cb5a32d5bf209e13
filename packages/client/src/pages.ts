import {
  clone,
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CallOptions, Transport } from "@connectrpc/connect";
import {
  type PaginationRequest,
  PaginationRequestSchema,
  type PaginationResponse,
} from "#gen/service/v1/pagination_pb.js";

/** Maximum elements of one page (contract, PaginationRequest.page_size). */
const MAX_PAGE_SIZE = 100;

type ListedIn<Page> = {
  // Fields with this prefix belong to every message.
  [Field in keyof Page as Field extends `$${string}`
    ? never
    : Field]-?: Page[Field] extends readonly (infer Element)[] ? Element : never;
};

/** The type of the elements of a page: a page has one list. */
export type ElementOf<Page> = ListedIn<Page>[keyof ListedIn<Page>];

type Asked = { pagination?: PaginationRequest };
type Page = { readonly pagination?: PaginationResponse };

/**
 * Yields the pages of a list, from the first or from the one whose token the request has. Each is read lazily.
 * @throws TypeError when the operation is not a list
 */
export async function* readPages<I extends DescMessage, O extends DescMessage>(
  transport: Transport,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  { signal, timeoutMs, headers, contextValues }: CallOptions,
): AsyncGenerator<MessageShape<O>, void> {
  elementsField(method);
  const asked = clone(method.input, create(method.input, request)) as MessageShape<I> & Asked;
  const pageSize = asked.pagination?.pageSize || MAX_PAGE_SIZE;
  for (let token = asked.pagination?.token ?? ""; ; ) {
    asked.pagination = create(PaginationRequestSchema, { pageSize, token });
    const req = asked as MessageInitShape<I>;
    const { message } = await transport.unary(method, signal, timeoutMs, headers, req, contextValues);
    yield message;
    token = (message as Page).pagination?.nextToken ?? "";
    if (token === "") return;
  }
}

/** Yields the elements of a list, page by page. @throws TypeError when the operation is not a list */
export async function* readList<I extends DescMessage, O extends DescMessage>(
  transport: Transport,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions,
): AsyncGenerator<ElementOf<MessageShape<O>>, void> {
  const field = elementsField(method) as keyof MessageShape<O>;
  for await (const page of readPages(transport, method, request, options)) {
    yield* page[field] as Iterable<ElementOf<MessageShape<O>>>;
  }
}

/** Returns the name of the field that contains the elements of a page. */
function elementsField({ name, input, output }: DescMethodUnary): string {
  const lists = output.fields.filter(({ fieldKind }) => fieldKind === "list");
  const [field] = lists;
  const hasPages = [input, output].every(({ field: { pagination } }) => pagination !== undefined);
  if (!hasPages || field === undefined || lists.length > 1) throw new TypeError(`${name} returns no pages`);
  return field.localName;
}
