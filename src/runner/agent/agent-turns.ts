/** Which turn of an agent goes on, by the inputs that it was given and has got. */
export class Turns {
  /** Given and not confirmed, in order. */
  readonly #unseen = new Set<string>();
  #isOpen = false;
  #inputId = "";

  /** The input that began the turn that goes on, or went on last; empty before the first. */
  get inputId(): string {
    return this.#inputId;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** An input is given to the agent. @returns whether it begins a turn; otherwise it joins the one that goes on */
  give(inputId: string): boolean {
    this.#unseen.add(inputId);
    return !this.#isOpen && this.#begin(inputId);
  }

  /** The agent confirms an input. @returns whether there was something to confirm */
  see(inputId: string): boolean {
    return this.#unseen.delete(inputId);
  }

  /**
   * The agent says that it has done its turn. What it was given and has not
   * confirmed by then, it gets in another turn, which begins at once.
   *
   * @returns whether it waits from now on, goes on with another turn, or has not
   *   even confirmed what began this one, which then is not over
   */
  end(): "waits" | "goes-on" | "unconfirmed" {
    if (this.#isOpen && this.#unseen.has(this.#inputId)) return "unconfirmed";
    this.#isOpen = false;
    const [next] = this.#unseen;
    if (next === undefined) return "waits";
    this.#begin(next);
    return "goes-on";
  }

  #begin(inputId: string): true {
    this.#isOpen = true;
    this.#inputId = inputId;
    return true;
  }
}
