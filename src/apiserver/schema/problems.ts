/** A member of an object by its key, or an element of a list by its index. */
export type PathSegment = string | number;

/**
 * Bounds on what a single bad body can make us say. The real server stops at a hundred as well; without
 * the second bound one key of a megabyte with a thousand duplicates below it would become a gigabyte.
 */
const PROBLEMS_MAX = 100;
const PATH_CHARS_MAX = 1_024;

/** `spec.containers[1].name`, as the real server writes paths of unknown and duplicate fields. */
export function formatPath(path: readonly PathSegment[]): string {
  let text = "";
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`;
    else text += text === "" ? segment : `.${segment}`;
    if (text.length > PATH_CHARS_MAX) return `${text.slice(0, PATH_CHARS_MAX)}...`;
  }
  return text;
}

/** Adds what is not there yet, up to the bound. */
export function addProblem(problems: string[], problem: string): void {
  if (problems.length < PROBLEMS_MAX && !problems.includes(problem)) problems.push(problem);
}
