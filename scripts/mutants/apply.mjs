// A mutant as modules: the changed sources, compiled one by one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { root } from "../build.mjs";

/** The address of each changed module in dist/, and its text. */
export function modulesOf(mutant) {
  return [...sourcesOf(mutant)].map(([file, source]) => ({
    url: urlOf(file),
    source: compile(file, source),
  }));
}

/** The changed sources by their path. Throws where a change does not match exactly once. */
export function sourcesOf({ id, changes }) {
  const sources = new Map();
  for (const { file, from, to } of changes) {
    const source = sources.get(file) ?? readFileSync(join(root, file), "utf8");
    const found = source.split(from).length - 1;
    if (found !== 1)
      throw new Error(
        `mutant ${id}: its text is found ${found} times in ${file}, not once; the code has changed, so say anew what breaks the promise:\n${from}`,
      );
    // As a function: `$` has a meaning in a replacement.
    sources.set(
      file,
      source.replace(from, () => to),
    );
  }
  return sources;
}

function urlOf(file) {
  return pathToFileURL(join(root, "dist", file.replace(/\.ts$/, ".js"))).href;
}

/** Types are not checked: a mutant may leave a name unused. */
function compile(fileName, source) {
  const { outputText, diagnostics } = ts.transpileModule(source, {
    fileName,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      rewriteRelativeImportExtensions: true,
    },
  });
  const [problem] = diagnostics ?? [];
  if (problem !== undefined)
    throw new Error(`${fileName}: ${ts.flattenDiagnosticMessageText(problem.messageText, "\n")}`);
  return outputText;
}
