package chartroom.client;

import build.buf.validate.FieldPathElement;
import build.buf.validate.Violations;
import chartroom.service.v1.ErrorDetail;
import chartroom.service.v1.ErrorReason;
import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A failed call as a program reads it.
 *
 * @param code the kind of failure
 * @param reason the reason from the contract's catalogue: unspecified when no server has responded, unrecognized when
 * it is newer than this package
 * @param metadata facts about the failure, with the keys that the catalogue names for the reason
 * @param violations the first 20 rules that the request breaks
 * @param message the server's sentence, for a person
 * @param requestId the id of the call in the server's log; empty when no server has responded
 */
public record Failure(
    Status.Code code,
    ErrorReason reason,
    Map<String, String> metadata,
    List<Violation> violations,
    String message,
    String requestId) {
  private static final Metadata.Key<String> REQUEST_ID =
      Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER);

  /** Returns everything that a call has thrown as a Failure. */
  public static Failure of(Throwable thrown) {
    Metadata trailers = Status.trailersFromThrowable(thrown);
    return of(Status.fromThrowable(thrown), trailers == null ? new Metadata() : trailers);
  }

  /** Returns the reason of a failed call from the contract's catalogue. */
  public static ErrorReason reasonOf(Throwable thrown) {
    return of(thrown).reason();
  }

  static Failure of(Status status, Metadata trailers) {
    ErrorDetail detail = ErrorDetail.getDefaultInstance();
    List<Violation> violations = List.of();
    try {
      for (Any each : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
        if (each.is(ErrorDetail.class)) detail = each.unpack(ErrorDetail.class);
        if (each.is(Violations.class)) violations = violationsOf(each.unpack(Violations.class));
      }
    } catch (InvalidProtocolBufferException error) {
      // Unreadable details are ignored.
    }
    String message = status.getDescription() == null ? status.getCode().name() : status.getDescription();
    String requestId = trailers.get(REQUEST_ID);
    return new Failure(
        status.getCode(),
        detail.getReason(),
        detail.getMetadataMap(),
        violations,
        message,
        requestId == null ? "" : requestId);
  }

  private static List<Violation> violationsOf(Violations violations) {
    return violations.getViolationsList().stream()
        .map(
            each -> {
              String path =
                  each.getField().getElementsList().stream().map(Failure::nameOf).collect(Collectors.joining("."));
              return new Violation(path, each.getRuleId(), each.getMessage());
            })
        .toList();
  }

  private static String nameOf(FieldPathElement element) {
    Object subscript =
        switch (element.getSubscriptCase()) {
          case INDEX -> element.getIndex();
          case BOOL_KEY -> element.getBoolKey();
          case INT_KEY -> element.getIntKey();
          case UINT_KEY -> element.getUintKey();
          case STRING_KEY -> '"' + element.getStringKey() + '"';
          case SUBSCRIPT_NOT_SET -> null;
        };
    return element.getFieldName() + (subscript == null ? "" : "[" + subscript + "]");
  }
}
