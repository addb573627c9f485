import { fileURLToPath } from "node:url";
import type { Program, Stage } from "./stage.ts";

/** The build that this file belongs to; `npm run conformance` has made it just before. */
const MAIN = fileURLToPath(new URL("../../src/cli/main.js", import.meta.url));

/** One of our own processes. */
export function startMooring(stage: Stage, command: string, flags: readonly string[]): Program {
  return stage.start(`mooring-${command}`, process.execPath, [MAIN, command, ...flags]);
}
