import { ageSince } from "../../views/age.ts";
import type { ChainLink } from "../../views/chain.ts";
import type { Blocker, Explanation } from "../../views/explanation.ts";
import type { Evidence } from "../../views/reasons/reasons.ts";
import type { Style } from "./style.ts";
import { formatTable } from "./table.ts";

/** An explanation for people: the answer first, then the chain that leads to it, then what to do. */
export function formatExplanation(explanation: Explanation, nowMs: number, style: Style): string {
  const { summary, blocker, chain, also, others, missingRights, notes } = explanation;
  const headline = explanation.healthy ? style.good(summary) : style.bad(summary);
  return [
    [headline],
    chain.length === 0 ? [] : [formatChain(chain, nowMs, blocker, style)],
    blocker === undefined ? [] : formatBlocker(blocker, nowMs, style),
    listed("Also:", also, style),
    listed("Takes part:", others, style),
    listed("Could not be read, so this is explained without it:", missingRights, style),
    listed("Note:", notes, style),
  ]
    .filter((paragraph) => paragraph.length > 0)
    .map((paragraph) => paragraph.join("\n"))
    .join("\n\n");
}

function formatChain(
  chain: readonly ChainLink[],
  nowMs: number,
  blocker: Blocker | undefined,
  { strong }: Style,
): string {
  const rows = chain.map(({ link, object, state, sinceMs, evidence }) => [
    link === blocker?.link ? ">" : "",
    link,
    object,
    state,
    ageSince(sinceMs, nowMs),
    evidence.map(({ field, value }) => `${field}=${value}`).join("; "),
  ]);
  const [header = "", ...lines] = formatTable(["", "LINK", "OBJECT", "STATE", "AGE", "EVIDENCE"], rows).split(
    "\n",
  );
  return [header, ...lines.map((line) => (line.startsWith(">") ? strong(line) : line))].join("\n");
}

function formatBlocker(blocker: Blocker, nowMs: number, { strong }: Style): readonly string[] {
  const { reason, waiting, sinceMs, evidence, next, help } = blocker;
  const age = sinceMs === undefined ? "" : `, for ${ageSince(sinceMs, nowMs)}`;
  const alias = waiting === undefined || waiting === reason ? "" : `, to the controller ${waiting}`;
  return [
    `${strong("Reason:")}    ${reason}${alias}${age}`,
    ...evidence.map((item) => `${strong("Evidence:")}  ${formatEvidence(item)}`),
    `${strong("Next:")}      ${next}`,
    ...("command" in help
      ? [`${strong("Helps:")}     ${help.command}`, ...(help.note ? [`           (${help.note})`] : [])]
      : [
          `${strong("Helps:")}     no command: ${help.none}`,
          ...(help.look ? [`${strong("Look at:")}   ${help.look}`] : []),
        ]),
  ];
}

function formatEvidence({ object, field, value }: Evidence): string {
  return `${object}: ${field} = ${value}`;
}

function listed(title: string, items: readonly string[], { strong }: Style): readonly string[] {
  return items.length === 0 ? [] : [strong(title), ...items.map((item) => `  - ${item}`)];
}
