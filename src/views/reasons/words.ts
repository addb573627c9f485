/** The links of the chain from a pod to its data, in causal order. */
export const LINKS = ["pod", "claim", "volume", "attachment", "node", "driver", "mount"] as const;
export type Link = (typeof LINKS)[number];

/** How a volume that is stopped there is called in a column. */
export type StoppedState =
  "unbound" | "unscheduled" | "attaching" | "held" | "mounting" | "growing" | "detaching" | "waiting";

/**
 * One reason in words. `{name}` is replaced by what the finding names. Everything that a person reads about a reason
 * is here, so that the command line and the dashboard cannot explain one volume in two ways.
 */
export interface Words {
  /** Where the chain is broken. */
  readonly link: Link;
  readonly state: StoppedState;
  /** The reason of docs/reference/waiting that Mooring's controller has for the same thing, where it has one. */
  readonly waiting?: string;
  /** What blocks; the second half of the first sentence. */
  readonly says: string;
  /** What happens by itself, and when. */
  readonly next: string;
  readonly help: Help;
}

/** A command that can do no harm, or why there is none. */
export type Help =
  { readonly command: string; readonly note?: string } | { readonly none: string; readonly look?: string };
