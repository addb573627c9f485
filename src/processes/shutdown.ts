/** A terminal, npm and a supervisor may each pass on one and the same request: those come within milliseconds. */
const ONE_REQUEST_MS = 1_000;

/** The process as far as its end is concerned; tests have their own. */
export interface Endable {
  on(signal: "SIGINT" | "SIGTERM" | "SIGHUP", listener: () => void): unknown;
  /** Ends at once: what is mounted stays. */
  exit(code: number): void;
  /** Milliseconds that never jump. */
  now(): number;
}

/**
 * Aborts when the operating system asks this process to end: Ctrl-C, SIGTERM, or a terminal that was closed (SIGHUP). A
 * second Ctrl-C, later than the echoes of the first, ends it at once: a person is tired of waiting. No other signal does,
 * however often it comes: `timeout` sends SIGTERM to the whole process group, npm sends it on, and whoever means it has SIGKILL.
 */
export function shutdownSignal(self: Endable = thisProcess()): AbortSignal {
  const controller = new AbortController();
  let firstAtMs = 0;
  const ask = (name: string) => {
    firstAtMs = self.now();
    controller.abort(new Error(name));
  };
  for (const name of ["SIGTERM", "SIGHUP"] as const)
    self.on(name, () => {
      if (!controller.signal.aborted) ask(name);
    });
  self.on("SIGINT", () => {
    if (!controller.signal.aborted) ask("SIGINT");
    else if (self.now() - firstAtMs > ONE_REQUEST_MS) self.exit(1);
  });
  return controller.signal;
}

function thisProcess(): Endable {
  return {
    on: (signal, listener) => process.on(signal, listener),
    exit: (code) => process.exit(code),
    now: () => performance.now(),
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
