import { LEFT_OUT } from "./left-out.ts";
import type { SpecLists } from "./page.ts";
import { PASSING, PASSING_SLOWLY } from "./passing.ts";

/** Every Conformance spec of the newest pinned Kubernetes, in the groups that are judged. */
export const SPEC_LISTS: SpecLists = { passing: PASSING, slow: PASSING_SLOWLY, leftOut: LEFT_OUT };
