import { readFileSync } from "node:fs";
import { Session } from "node:inspector";
import { fileURLToPath } from "node:url";
import { parseMappings, toFileBranches, type Branches, type CoverageRange } from "./branches.ts";

/** The files with the decisions; each promise of Mooring is a branch of one of them. */
export const PLAN_FILES = [
  "attach-detach/plan",
  "attacher/plan",
  "node/plan",
  "node/plan-draft",
  "node/plan-keeping",
  "node/plan-waits",
];

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly CoverageRange[] }[];
}

/**
 * V8's precise block coverage of this thread. It has to begin before the code is loaded. Counts are not kept: yes or no is all
 * that is asked, and the optimiser stays on.
 */
export function startBlockCoverage(): { take(): Branches | undefined } {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: false, detailed: true });
  return {
    take() {
      let scripts: readonly ScriptCoverage[] = [];
      // Answered at once: the session is of this very thread.
      session.post("Profiler.takePreciseCoverage", (_error, answer) => {
        scripts = (answer as { result: readonly ScriptCoverage[] }).result;
      });
      session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
      return readBranches(scripts);
    },
  };
}

/** Undefined without source maps, which a package does not have. */
function readBranches(scripts: readonly ScriptCoverage[]): Branches | undefined {
  const found: Record<string, Branches[string]> = {};
  for (const name of PLAN_FILES) {
    const script = scripts.find(({ url }) => url.endsWith(`/src/${name}.js`));
    if (script === undefined) continue;
    try {
      const path = fileURLToPath(script.url);
      const generated = readFileSync(path, "utf8");
      const { mappings, sources } = JSON.parse(readFileSync(`${path}.map`, "utf8")) as {
        mappings: string;
        sources: [string];
      };
      const source = readFileSync(new URL(sources[0], script.url), "utf8");
      found[`src/${name}.ts`] = toFileBranches(script.functions, {
        mappings: parseMappings(mappings, generated),
        source,
        length: generated.length,
      });
    } catch {
      return undefined;
    }
  }
  return found;
}
