package chartroom.client;

import java.util.Iterator;

/** The position in a stream. */
interface Place<T> {
  /** Opens the stream after this position. */
  Iterator<T> open();

  /** Accepts a message and returns its new part; null when nothing is new. */
  T take(T message);

  /** Returns a value that changes when a message advances the stream. Not every new message does. */
  Object position();

  /** Returns whether the stream is complete if it ends now without an error. */
  boolean isComplete();
}
