import { scrubText } from "../../base/redact.ts";
import { KubeError } from "../errors.ts";

/** Where in the configuration something is: a file, and in it a field like `users[name=admin].user.token`. */
export interface Place {
  readonly file: string;
  readonly field?: string | undefined;
}

/** A broken file may hold hundreds of broken entries; nobody reads past the first twenty. */
const SHOWN_MAX = 20;

/**
 * Collects what is wrong with a kubeconfig, so that one run reports everything. A problem is a sentence with two
 * halves: what is wrong, and what to do. It never contains the value of a field that may be secret.
 */
export class Problems {
  readonly #lines: string[] = [];

  add(place: Place, problem: string): void {
    // Scrubbed, for the token that was pasted where the path of its file belongs.
    this.#lines.push(
      scrubText([place.file, place.field, problem].filter((part) => part !== undefined).join(": ")),
    );
  }

  throwIfAny(): void {
    const [first] = this.#lines;
    if (first === undefined) return;
    if (this.#lines.length === 1) throw new KubeError("BadConfig", first);
    const shown = this.#lines.slice(0, SHOWN_MAX).map((line) => `\n  ${line}`);
    const more = this.#lines.length > SHOWN_MAX ? `\n  and ${this.#lines.length - SHOWN_MAX} more` : "";
    throw new KubeError(
      "BadConfig",
      `${this.#lines.length} problems in the kubeconfig:${shown.join("")}${more}`,
    );
  }
}

/** Names for a message: `a, b, c`, bounded. */
export function listed(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : "";
  return names.slice(0, SHOWN_MAX).join(", ") + more;
}
