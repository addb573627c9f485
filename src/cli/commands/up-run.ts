import { relative } from "node:path";
import { runAllInOne, type Display, type ReadyInfo } from "../../processes/all-in-one.ts";
import { shellQuoted } from "../../views/reasons/words.ts";
import { formatExplanation } from "../output/explanation.ts";
import { createLinePrinter } from "../output/streams.ts";
import { styleFor } from "../output/style.ts";
import { widthOf } from "../output/width.ts";
import type { UpFlags } from "./up.ts";

/** `mooring up`. What was asked for with `--once` and is not there makes it fail. */
export async function runUp({
  listen,
  verbose = false,
  timeout,
  once,
  flexVolumePluginDir,
  ...flags
}: UpFlags): Promise<void> {
  // `mooring up | head -1`: as with Ctrl-C, so that nothing stays mounted.
  const unread = new AbortController();
  const print = createLinePrinter(process.stdout, () => unread.abort(new Error("nobody reads its output")));
  const display = createDisplay(print);
  const options = { ...flags, ...listen, verbose, once, flexVolumePluginDir, timeoutMs: timeout };
  const done = await runAllInOne(options, display, unread.signal);
  if (!done) process.exitCode = 1;
}

function createDisplay(print: (line: string) => void): Display {
  const line = (name: string, state: string, tookMs: number, detail: string) =>
    print(`${name.padEnd(14)}  ${state.padEnd(5)}  ${`${Math.round(tookMs)} ms`.padStart(8)}  ${detail}`);
  return {
    report: ({ component, detail, tookMs }) => line(component, "ready", tookMs, detail),
    slow: (component, sinceMs) => line(component, "...", sinceMs, "still starting"),
    ready: (info) => readyLines(info).forEach(print),
    applied: (label, state, tookMs) =>
      print(`${label.padEnd(30)}  ${`${Math.round(tookMs)} ms`.padStart(8)}  ${state}`),
    late({ label, state, explanation }, nowMs) {
      print(`\n${label} is not ready (${state})`);
      const layout = { width: widthOf(process.stdout, process.env), asksWide: false };
      if (explanation)
        print(formatExplanation(explanation, nowMs, styleFor(process.stdout, process.env), layout));
    },
    stopping: (reason) => print(`\nstopping (${reason})`),
    stopped: () => print("stopped"),
  };
}

function readyLines({
  url,
  kubeconfig,
  debugUrl,
  logFile,
  example,
  hasKubectl,
}: ReadyInfo): readonly string[] {
  const flag = `--kubeconfig ${shellQuoted(kubeconfig)}`;
  const mooring = commandName();
  return [
    "",
    `address     ${url}`,
    `kubeconfig  ${kubeconfig}`,
    `debug       ${debugUrl}/debug/volumes`,
    `log         ${logFile ?? "stderr"}`,
    "",
    "Try next:",
    ...(hasKubectl
      ? [`  kubectl ${flag} apply -f ${shellQuoted(shortest(example))}`]
      : [`  ${mooring} get nodes ${flag}`]),
    `  ${mooring} get volumes ${flag}`,
    `  ${mooring} why pod/web ${flag}`,
    "",
    "Objects and volumes are kept in the data directory: the next start finds them.",
    "Press Ctrl-C to stop.",
  ];
}

/** How this very program is called from here. */
function commandName(): string {
  const [, script = ""] = process.argv;
  return script.includes("node_modules") || script.includes("_npx")
    ? "npx mooring"
    : shellQuoted(shortest(script));
}

/** Relative where that is shorter, and with a `./` where a shell wants one. */
function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.length < path.length && !near.startsWith("..") ? near : path;
}
