import { abortReason } from "../../base/clock.ts";
import { systemCode } from "../../kube/config/world.ts";
import { FlexError, parseFlexAnswer, quote, type FlexAnswer, type FlexVerb } from "./flex-protocol.ts";
import { Slots } from "./slots.ts";

/** The machine a driver runs on. `processes/flex-host.ts` is the real one. */
export interface FlexHost {
  /** What lies below the plugin directory, looked at and not run; empty where the directory is missing. */
  list(): Promise<readonly FlexDriverFile[]>;
  /**
   * Runs a driver without a shell and resolves when it ended, whatever its exit code. Rejects with an Error whose
   * `code` is ETIMEDOUT past the deadline, EFBIG for too much output, and the system's (ENOENT, EACCES) where it
   * cannot be run; with the signal's reason once that aborts. In each case the driver and its children have been killed.
   */
  exec(
    file: string,
    args: readonly string[],
    options: { readonly deadlineMs: number; readonly signal: AbortSignal },
  ): Promise<FlexRun>;
}

export interface FlexRun {
  /** Undefined when a signal ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FlexDriverFile {
  /** `acme~disk` */
  readonly directory: string;
  /** The whole path of the program. */
  readonly file: string;
  /** Another text when the file is another. */
  readonly version: string;
  /** Why it must not be run, where it must not. */
  readonly refused?: string | undefined;
}

export interface FlexCall {
  readonly verb: FlexVerb;
  readonly args: readonly string[];
  /** For people: `volume pv-1 on node a`. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
  /** Its turn has come: the program is about to run. */
  readonly onAccepted?: (() => void) | undefined;
}

type FlexSuccess = Extract<FlexAnswer, { kind: "success" | "not-supported" }>;

/** Rejects with a FlexError, or with the reason of the signal. */
export type FlexDriver = (call: FlexCall) => Promise<FlexSuccess>;

/** An attach may take as long as one through CSI; `init` and `isattached` only look. */
const DEADLINE_MS: Readonly<Record<FlexVerb, number>> = {
  init: 10_000,
  attach: 120_000,
  isattached: 30_000,
  detach: 120_000,
};

/** Processes of one driver at once. A node that dies with 1,000 volumes must not start 1,000 scripts. */
const CHANGES_AT_ONCE = 32;
/** Of their own, so that a slow look at everything does not hold up an attach. */
const LOOKS_AT_ONCE = 4;
/** Past this a look is refused: what cannot be asked in time is better asked next time. */
const LOOKS_WAITING_MAX = 256;

/** One driver: runs its program, a bounded number at once, and remembers which verbs it does not have. */
export function createFlexDriver(
  host: Pick<FlexHost, "exec">,
  { driver, file }: { readonly driver: string; readonly file: string },
): FlexDriver {
  const changes = new Slots(CHANGES_AT_ONCE);
  const looks = new Slots(LOOKS_AT_ONCE);
  // Holds for this program; another version of it is another driver.
  const unsupported = new Set<FlexVerb>();

  return async (call) => {
    if (unsupported.has(call.verb)) return { kind: "not-supported" };
    if (call.verb === "isattached" && looks.waiting >= LOOKS_WAITING_MAX)
      throw failure(call, driver, "DriverFailed", `${looks.waiting} calls wait already`);
    const slots = call.verb === "isattached" ? looks : changes;
    const run = await slots.run(() => {
      call.onAccepted?.();
      return exec(host, { driver, file, call });
    }, call.signal);
    const answer = judge(run, { driver, call });
    if (answer.kind === "not-supported") unsupported.add(call.verb);
    return answer;
  };
}

async function exec(
  host: Pick<FlexHost, "exec">,
  { driver, file, call }: { readonly driver: string; readonly file: string; readonly call: FlexCall },
): Promise<FlexRun> {
  const deadlineMs = DEADLINE_MS[call.verb];
  const signal = call.signal ?? new AbortController().signal;
  try {
    return await host.exec(file, [call.verb, ...call.args], { deadlineMs, signal });
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    const options = { cause: error };
    if (systemCode(error) === "ETIMEDOUT") {
      const text = `no answer within ${deadlineMs / 1_000} s, so it was killed; it may have done its work`;
      throw failure(call, driver, "DeadlineExceeded", text, options);
    }
    const code = systemCode(error) === "EFBIG" ? "BadAnswer" : "BadDriver";
    const text = `${file}: ${error instanceof Error ? error.message : String(error)}`;
    throw failure(call, driver, code, text, options);
  }
}

/** An answer and an exit code can contradict each other; the worse of the two is believed. */
function judge(
  run: FlexRun,
  { driver, call }: { readonly driver: string; readonly call: FlexCall },
): FlexSuccess {
  // Some drivers answer on stderr: upstream reads both as one.
  const answer = parseFlexAnswer(run.stdout.trim() === "" ? run.stderr : run.stdout);
  const ended = run.code === undefined ? "ended by a signal" : `exit code ${run.code}`;
  const stderr = run.stderr.trim() === "" ? "" : `; stderr ${quote(run.stderr)}`;
  switch (answer.kind) {
    case "not-supported":
      return answer;
    case "success":
      if (run.code === 0) return answer;
      throw failure(call, driver, "DriverFailed", `it answered Success, but ${ended}${stderr}`);
    case "failure":
      throw failure(call, driver, "DriverFailed", `${answer.reason} (${ended})`);
    case "unreadable":
      throw failure(call, driver, "BadAnswer", `${answer.reason} (${ended})${stderr}`);
  }
}

function failure(
  { verb, what }: FlexCall,
  driver: string,
  code: FlexError["code"],
  text: string,
  options?: ErrorOptions,
): FlexError {
  return new FlexError(code, `FlexVolume driver ${driver}, ${verb}, ${what}: ${text}`, options);
}
