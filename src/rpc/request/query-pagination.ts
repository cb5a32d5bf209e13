import { create, type DescMessage } from "@bufbuild/protobuf";
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import { type PaginationRequest, PaginationRequestSchema } from "#gen/service/v1/pagination_pb.js";
import { valueUnusable } from "../../domain/error.ts";

/** The context key of the query of the request's URL, without the question mark; empty when there is none. */
export const queryKey = createContextKey("", { description: "query of the URL" });

/**
 * Fills the pagination of a List request that its body omits with `token` and
 * `pageSize` of the URL's query, where some generated clients send them. The body
 * wins as a whole when it has a pagination. Runs before validation, so that the
 * limits of the contract apply to both.
 *
 * @throws DomainError VALUE_UNUSABLE for a `pageSize` that is no whole number
 */
export const queryPagination: Interceptor = (next) => (req) => {
  const query = req.contextValues.get(queryKey);
  if (query === "" || req.stream || !isPaged(req.method.input)) return next(req);
  const message = req.message as { pagination?: PaginationRequest };
  if (message.pagination === undefined) {
    const pagination = paginationOf(new URLSearchParams(query));
    if (pagination) message.pagination = pagination;
  }
  return next(req);
};

function isPaged(input: DescMessage): boolean {
  return input.field.pagination?.message?.typeName === PaginationRequestSchema.typeName;
}

function paginationOf(query: URLSearchParams): PaginationRequest | undefined {
  const pageSize = query.get("pageSize");
  const token = query.get("token");
  if (pageSize === null && token === null) return undefined;
  if (pageSize !== null && !/^-?\d{1,9}$/.test(pageSize)) {
    throw valueUnusable("pageSize", "pageSize of the query must be a whole number from 0 to 100");
  }
  return create(PaginationRequestSchema, { pageSize: Number(pageSize ?? 0), token: token ?? "" });
}
