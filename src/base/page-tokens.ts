/**
 * The tokens by which a list is read page after page. Whoever gives them out is another program: one that repeats itself, or
 * has a next page for ever, would be followed until memory ends. Callers may rely on `follow` to throw before that.
 */
export class PageTokens {
  readonly #seen = new Set<string>();
  readonly #pagesMax: number;

  constructor({ pagesMax = PAGES_MAX }: { readonly pagesMax?: number } = {}) {
    this.#pagesMax = pagesMax;
  }

  /** The token of the next page, undefined after the last. Throws what `nowhere` makes of the reason it cannot be followed. */
  follow(token: string | undefined, nowhere: (why: string) => Error): string | undefined {
    if (token === undefined || token === "") return undefined;
    if (this.#seen.has(token)) throw nowhere("it gave out the same next page twice");
    this.#seen.add(token);
    if (this.#seen.size >= this.#pagesMax)
      throw nowhere(`it is not at its end after ${this.#pagesMax} pages`);
    return token;
  }
}

/** At 500 objects a page, 5,000,000 of them: five times what the largest cluster has of one kind. */
export const PAGES_MAX = 10_000;
