import { ageSince } from "../../views/age.ts";
import type { ChainLink } from "../../views/chain.ts";
import type { Blocker, Explanation } from "../../views/explanation.ts";
import type { Evidence } from "../../views/reasons/reasons.ts";
import { createNameShortener } from "./cut.ts";
import type { Style } from "./style.ts";
import { fitTable, formatTable } from "./table.ts";
import { wrap, wrapCommand } from "./wrap.ts";

export interface Layout {
  /** Columns to fit into; without it nothing is cut or broken: `-o wide`. */
  readonly width?: number;
  /** Whether the reader can ask the same command for more. */
  readonly asksWide?: boolean;
}

/** How sentences, commands and tables are set, for one width. */
interface Setting {
  readonly style: Style;
  readonly width: number;
  /** Made names are shortened; the same way in all of one answer. */
  readonly short: (text: string) => string;
}

/** An explanation for people: the answer first, then the chain that leads to it, then what to do. */
export function formatExplanation(
  explanation: Explanation,
  nowMs: number,
  style: Style,
  { width, asksWide = true }: Layout = {},
): string {
  const { summary, blocker, chain, also, others, facts, contradictions, missingRights, notes } = explanation;
  const setting: Setting = {
    style,
    width: width ?? Infinity,
    short: width === undefined ? (text) => text : createNameShortener(),
  };
  const headline = wrap(setting.short(summary), setting);
  const body = [
    [explanation.healthy ? style.good(headline) : style.bad(headline)],
    chain.length === 0 ? [] : [formatChain(chain, nowMs, blocker, setting)],
    blocker === undefined ? [] : formatBlocker(blocker, nowMs, setting),
    [`${style.strong("Certainty:")} ${explanation.confidence}`],
    listed("These facts contradict each other:", contradictions, setting),
    listed("Also:", also, setting),
    listed("Takes part:", others, setting),
    listed("Facts:", facts, setting),
    listed("Could not be read, so this is explained without it:", missingRights, setting),
    listed("Note:", notes, setting),
  ]
    .filter((paragraph) => paragraph.length > 0)
    .map((paragraph) => paragraph.join("\n"))
    .join("\n\n");
  return width === undefined || chain.length === 0 || !asksWide ? body : `${body}\n\n${MORE}`;
}

const MORE = "(full names and all evidence: -o wide)";

const CHAIN_TITLES = ["", "LINK", "OBJECT", "STATE", "AGE"];

/** What each link is known by is only shown where nothing is cut: that of the blocker stands below in any case. */
function formatChain(
  chain: readonly ChainLink[],
  nowMs: number,
  blocker: Blocker | undefined,
  { style, width, short }: Setting,
): string {
  const cells = chain.map(({ link, object, state, sinceMs }) => [
    link === blocker?.link ? ">" : "",
    link,
    short(object),
    short(state),
    ageSince(sinceMs, nowMs),
  ]);
  if (width !== Infinity) {
    const table = fitTable(CHAIN_TITLES, cells, width);
    return [table.header, ...cells.map((row) => marked(table.row(row), style))].join("\n");
  }
  const evidence = chain.map((link) =>
    link.evidence.map(({ field, value }) => `${field}=${value}`).join("; "),
  );
  const rows = cells.map((row, index) => [...row, evidence[index] ?? ""]);
  const [header = "", ...lines] = formatTable([...CHAIN_TITLES, "EVIDENCE"], rows).split("\n");
  return [header, ...lines.map((line) => marked(line, style))].join("\n");
}

function marked(line: string, { strong }: Style): string {
  return line.startsWith(">") ? strong(line) : line;
}

/** `Evidence:  ` and as much before every further line. */
const LABEL_WIDTH = 11;

function formatBlocker(blocker: Blocker, nowMs: number, setting: Setting): readonly string[] {
  const { reason, waiting, sinceMs, evidence, next, help } = blocker;
  const age = sinceMs === undefined ? "" : `, for ${ageSince(sinceMs, nowMs)}`;
  const alias = waiting === undefined || waiting === reason ? "" : `, to the controller ${waiting}`;
  return [
    labelled("Reason:", `${reason}${alias}${age}`, setting),
    ...evidence.map((item) => labelled("Evidence:", formatEvidence(item), setting)),
    labelled("Next:", next, setting),
    ...("command" in help
      ? [
          commandLine("Helps:", help.command, setting),
          ...(help.note ? [labelled("", `(${help.note})`, setting)] : []),
        ]
      : [
          labelled("Helps:", `no command: ${help.none}`, setting),
          ...(help.look ? [commandLine("Look at:", help.look, setting)] : []),
        ]),
  ];
}

function labelled(label: string, text: string, { style, width, short }: Setting): string {
  const [first, rest] = [label.padEnd(LABEL_WIDTH), " ".repeat(LABEL_WIDTH)];
  return emphasized(label, wrap(short(text), { width, first, rest }), style);
}

/** Commands are copied: names in them stay whole. */
function commandLine(label: string, command: string, { style, width }: Setting): string {
  const text = wrapCommand(command, { width, first: label.padEnd(LABEL_WIDTH), rest: "    " });
  return emphasized(label, text, style);
}

/** After the line was broken: what makes a word stand out has no width. */
function emphasized(label: string, text: string, { strong }: Style): string {
  return label === "" ? text : `${strong(label)}${text.slice(label.length)}`;
}

function formatEvidence({ object, field, value }: Evidence): string {
  return `${object}: ${field} = ${value}`;
}

function listed(
  title: string,
  items: readonly string[],
  { style, width, short }: Setting,
): readonly string[] {
  if (items.length === 0) return [];
  return [
    style.strong(title),
    ...items.map((item) => wrap(short(item), { width, first: "  - ", rest: "    " })),
  ];
}
