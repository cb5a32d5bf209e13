package chartroom.client;

import java.util.Iterator;

/** How far a stream has come. */
interface Place<T> {
  /** Opens the stream behind what has come. */
  Iterator<T> open();

  /** Notes a message and returns what of it is new; null when nothing is. */
  T take(T message);

  /** Returns what differs once a message has brought the place forward, which not each new one does. */
  Object position();

  /** Returns whether a stream that ends now without an error has ended for good. */
  boolean isComplete();
}
