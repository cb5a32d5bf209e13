package chartroom.client;

import io.grpc.Status;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Decides when a call is retried, and after which delay. */
final class Retries {
  private static final long FIRST_PAUSE_MS = 250;
  private static final long LONGEST_PAUSE_MS = 5_000;

  private Retries() {}

  /** Returns whether a retry may succeed: no response, a busy server, or too many calls. */
  static boolean isTemporary(Failure failure, Throwable cause) {
    // A retry would get the same certificate.
    for (Throwable each = cause; each != null; each = each.getCause())
      if (each instanceof CertificateException) return false;
    return switch (failure.reason()) {
      // An error of the connection or of a proxy.
      case ERROR_REASON_UNSPECIFIED -> failure.code() == Status.Code.UNAVAILABLE;
      case ERROR_REASON_UNAVAILABLE, ERROR_REASON_TOO_MANY_CALLS -> true;
      default -> false;
    };
  }

  /** Returns how long to wait after a number of failures in a row, at least as long as the server asks for. */
  static Duration pauseAfter(Failure failure, int failures) {
    long whole = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(failures - 1, 16));
    long asked = Long.parseLong(failure.metadata().getOrDefault("retry_after_seconds", "0")) * 1_000;
    return Duration.ofMillis(Math.max(asked, ThreadLocalRandom.current().nextLong(whole / 2, whole)));
  }
}
