import { ageSince } from "../../views/age.ts";
import type { Stuck, StuckCause, StuckObject } from "../../views/stuck.ts";
import { someOf } from "../../views/told.ts";
import { createNameShortener } from "./cut.ts";
import type { Layout } from "./explanation.ts";
import type { Style } from "./style.ts";
import { wrap, wrapCommand } from "./wrap.ts";

/** Before a count, and before what belongs to it. */
const COUNT_WIDTH = 6;
const INDENT = " ".repeat(COUNT_WIDTH + 2);

/** What is stuck, for people: most affected first, each with its cause, who it is, and where to look further. */
export function formatStuck(stuck: Stuck, nowMs: number, style: Style, { width }: Layout = {}): string {
  const short = width === undefined ? (text: string) => text : createNameShortener();
  const at = { width: width ?? Infinity };
  const summary = wrap(stuck.summary, at);
  const causes = stuck.causes.map((cause) => formatCause(cause, { nowMs, style, short, ...at }));
  const listed = (title: string, items: readonly string[]) =>
    items.length === 0
      ? []
      : [
          [
            style.strong(title),
            ...items.map((item) => wrap(item, { ...at, first: "  - ", rest: "    " })),
          ].join("\n"),
        ];
  return [
    stuck.causes.length === 0 ? style.good(summary) : style.bad(summary),
    ...causes,
    ...listed("Could not be read, so what depends on it is not told:", stuck.missingRights),
    ...listed("Note:", stuck.notes),
  ].join("\n\n");
}

interface Setting {
  readonly nowMs: number;
  readonly style: Style;
  readonly width: number;
  readonly short: (text: string) => string;
}

/** All of them only where there is room without end. */
const EXAMPLES_MAX = 3;

function formatCause(cause: StuckCause, { nowMs, style, width, short }: Setting): string {
  const { count, reason, sinceMs, command, objects } = cause;
  const age = sinceMs === undefined ? "" : `, for ${ageSince(sinceMs, nowMs)}`;
  const first = `${String(count).padStart(COUNT_WIDTH)}  `;
  const sentence = wrap(`${short(capitalized(cause.cause))} (${reason}${age})`, {
    width,
    first,
    rest: INDENT,
  });
  const who = namesOf(objects, width === Infinity ? objects.length : EXAMPLES_MAX);
  return [
    `${style.strong(first)}${sentence.slice(first.length)}`,
    wrap(short(who), { width, first: INDENT, rest: INDENT }),
    wrapCommand(command, { width, first: INDENT, rest: "    " }),
  ].join("\n");
}

/** A namespace that all of them have is said once. */
function namesOf(objects: readonly StuckObject[], max: number): string {
  const [first] = objects;
  const isOne = objects.every(({ namespace }) => namespace === first?.namespace);
  const where = ({ namespace }: StuckObject) => (namespace === "" ? "" : ` in namespace ${namespace}`);
  const names = objects.map((object) => `${object.kind}/${object.name}${isOne ? "" : where(object)}`);
  return `${someOf(names, max)}${isOne && first !== undefined ? where(first) : ""}`;
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** For programs: all objects of each cause, with moments as the API writes them. */
export function stuckToJson({ causes, ...rest }: Stuck): object {
  return {
    kind: "Stuck",
    ...rest,
    causes: causes.map(({ sinceMs, ...cause }) => ({
      ...cause,
      ...(sinceMs !== undefined && { since: new Date(sinceMs).toISOString() }),
    })),
  };
}
