package chartroom

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	servicev1 "chartroom.example/client/service/v1"
)

const pageSize = 100

// Page is the response of a list operation.
type Page interface {
	GetPagination() *servicev1.PaginationResponse
}

// Pages yields the pages of a list, from the one that the request names, with 100 entries unless it says otherwise:
//
//	for page, err := range chartroom.Pages(ctx, client.Project.ListProjects, &servicev1.ListProjectsRequest{}) { ... }
//
// After an error it yields nothing more.
func Pages[Request proto.Message, Response Page](
	ctx context.Context,
	list func(context.Context, Request) (Response, error),
	request Request,
) iter.Seq2[Response, error] {
	return func(yield func(Response, error) bool) {
		next := proto.Clone(request).(Request)
		message := next.ProtoReflect()
		field := message.Descriptor().Fields().ByName("pagination")
		pagination := message.Mutable(field).Message().Interface().(*servicev1.PaginationRequest)
		if pagination.PageSize == 0 {
			pagination.PageSize = pageSize
		}
		for {
			page, err := list(ctx, next)
			if !yield(page, err) || err != nil {
				return
			}
			pagination.Token = page.GetPagination().GetNextToken()
			if pagination.Token == "" {
				return
			}
		}
	}
}

// Items yields the entries of all pages of a list; the last argument takes them from a page:
//
//	entries := (*servicev1.ListProjectsResponse).GetProjects
//	for project, err := range chartroom.Items(ctx, client.Project.ListProjects, request, entries) { ... }
//
// After an error it yields nothing more.
func Items[Request proto.Message, Response Page, Item any](
	ctx context.Context,
	list func(context.Context, Request) (Response, error),
	request Request,
	entries func(Response) []Item,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for page, err := range Pages(ctx, list, request) {
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range entries(page) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}
