package chartroom.client;

import chartroom.service.v1.PaginationRequest;
import chartroom.service.v1.PaginationResponse;
import com.google.protobuf.Message;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;

/** Iterates over lists page by page. */
public final class Lists {
  private static final int PAGE_SIZE = 100;

  private Lists() {}

  /**
   * Returns the pages of a list, from the one that the request names, with 100 entries unless it says otherwise. Each
   * page is read lazily.
   *
   * @param list a list operation, such as {@code client.project()::listProjects}
   */
  public static <Q extends Message, P extends Message> Iterable<P> pages(Function<Q, P> list, Q request) {
    return () -> new Pages<>(list, request);
  }

  /**
   * Returns the entries of all pages of a list.
   *
   * @param entries takes the entries from a page, such as {@code ListProjectsResponse::getProjectsList}
   */
  public static <Q extends Message, P extends Message, T> Iterable<T> items(
      Function<Q, P> list, Q request, Function<P, List<T>> entries) {
    return () ->
        new Iterator<>() {
          private final Iterator<P> pages = new Pages<>(list, request);
          private Iterator<T> page = Collections.emptyIterator();

          @Override
          public boolean hasNext() {
            while (!page.hasNext() && pages.hasNext()) page = entries.apply(pages.next()).iterator();
            return page.hasNext();
          }

          @Override
          public T next() {
            if (!hasNext()) throw new NoSuchElementException();
            return page.next();
          }
        };
  }

  private static final class Pages<Q extends Message, P extends Message> implements Iterator<P> {
    private final Function<Q, P> list;
    private Q request;
    private PaginationRequest pagination;

    Pages(Function<Q, P> list, Q request) {
      this.list = list;
      this.request = request;
      pagination = (PaginationRequest) fieldOf(request);
      if (pagination.getPageSize() == 0) pagination = pagination.toBuilder().setPageSize(PAGE_SIZE).build();
    }

    @Override
    public boolean hasNext() {
      return pagination != null;
    }

    @Override
    public P next() {
      if (pagination == null) throw new NoSuchElementException();
      var field = request.getDescriptorForType().findFieldByName("pagination");
      @SuppressWarnings("unchecked")
      Q asked = (Q) request.toBuilder().setField(field, pagination).build();
      P page = list.apply(asked);
      String token = ((PaginationResponse) fieldOf(page)).getNextToken();
      pagination = token.isEmpty() ? null : pagination.toBuilder().setToken(token).build();
      return page;
    }

    private static Object fieldOf(Message message) {
      var field = message.getDescriptorForType().findFieldByName("pagination");
      if (field == null) throw new IllegalArgumentException(message.getClass().getSimpleName() + " has no pages");
      return message.getField(field);
    }
  }
}
