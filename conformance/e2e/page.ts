import { REASONS, SIGS, type LeftOut, type Passing, type Reason } from "./judgement.ts";

export interface SpecLists {
  readonly passing: Passing;
  readonly slow: Passing;
  readonly leftOut: LeftOut;
}

const ALL_REASONS = Object.keys(REASONS) as Reason[];

/** How many specs of each group pass, and how many are left out for which reason. */
export function countsTable({ passing, slow, leftOut }: SpecLists): string {
  const rows = SIGS.map((sig) => [
    `sig-${sig}`,
    passing[sig].length,
    slow[sig].length,
    ...ALL_REASONS.map((reason) => leftOut[sig][reason]?.length ?? 0),
  ]);
  const totals = ["all", ...columnSums(rows)];
  return [
    line(["", "pass", "pass slowly", ...ALL_REASONS]),
    line(["---", "---", "---", ...ALL_REASONS.map(() => "---")]),
    ...[...rows, totals].map(line),
  ].join("\n");
}

function columnSums(rows: readonly (readonly (string | number)[])[]): number[] {
  const [first = []] = rows;
  return first.slice(1).map((_, index) => rows.reduce((sum, row) => sum + Number(row[index + 1]), 0));
}

function line(cells: readonly (string | number)[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** The page with every spec by its name. */
export function specsPage({ passing, slow, leftOut }: SpecLists, version: string): string {
  const reasons = ALL_REASONS.map((reason) => `- **${reason}**: ${REASONS[reason]}`);
  const sections = SIGS.flatMap((sig) => [
    `## sig-${sig}`,
    "",
    ...listed("pass", passing[sig]),
    ...listed("pass slowly", slow[sig]),
    ...ALL_REASONS.flatMap((reason) => listed(`left out: ${reason}`, leftOut[sig][reason] ?? [])),
  ]);
  return [
    `# Conformance specs of Kubernetes ${version}`,
    "",
    "Every spec of seven groups that is labelled `Conformance`, and what becomes of it on `mooring apiserver`. Written by",
    "`npm run conformance -- --write` from `conformance/e2e/`; a spec that is in none of these lists fails the suite `e2e`.",
    "",
    ...reasons,
    "",
    ...sections,
  ].join("\n");
}

function listed(title: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`### ${title}`, "", ...names.map((name) => `- ${quoted(name)}`), ""];
}

/** Some names have backticks of their own. */
function quoted(name: string): string {
  return name.includes("`") ? `\`\` ${name} \`\`` : `\`${name}\``;
}
