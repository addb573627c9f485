import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { countsTable, specsPage, type SpecLists } from "./e2e/page.ts";
import type { Outcome } from "./suites/suite.ts";

const SPECS_PAGE = fileURLToPath(new URL("../../docs/conformance/e2e.md", import.meta.url));
const PAGE = fileURLToPath(new URL("../../docs/conformance.md", import.meta.url));

export function line({ suite, version, result, detail, seconds }: Outcome): string {
  const shown = result === "unsupported" ? "left out:" : result;
  return `${shown.padEnd(9)} ${suite.padEnd(11)} ${version.padEnd(9)} ${seconds.toFixed(1).padStart(6)} s  ${detail}`;
}

/** The part of the page between the marks; everything else of it is written by hand or by another command. */
export async function saveOutcomes(outcomes: readonly Outcome[], given: readonly string[]): Promise<void> {
  const programs = given.length === 0 ? "" : ` Not built from a pin but given: ${given.join(", ")}.`;
  await saveSection("suites", `Run on ${today()}, ${machine()}.${programs}\n\n${suiteTable(outcomes)}`);
}

/** Which specs of Kubernetes' own suite pass here, in numbers, and on a page of its own by name. */
export async function saveSpecs(lists: SpecLists, version: string): Promise<void> {
  await saveSection("e2e", countsTable(lists));
  await writeFile(SPECS_PAGE, specsPage(lists, version));
}

function suiteTable(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(
    ({ suite, claim, version, result, detail, seconds }) =>
      `| ${suite} | ${claim} | ${version} | ${result} | ${seconds.toFixed(0)} | ${detail.replaceAll("|", "/")} |`,
  );
  return [
    "| suite | what is claimed | Kubernetes | result | s | figures, or why not |",
    "|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

export async function saveSection(name: string, text: string): Promise<void> {
  const begin = `<!-- begin ${name} -->`;
  const end = `<!-- end ${name} -->`;
  const page = await readFile(PAGE, "utf8");
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`docs/conformance.md: no marks for ${name}; put them back`);
  await writeFile(PAGE, `${page.slice(0, from)}${begin}\n\n${text}\n\n${page.slice(to)}`);
}

export function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Its class, not its name: what a reader needs to compare figures. */
export function machine(): string {
  return `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.version}`;
}
