import { systemCode } from "../../kube/config/world.ts";
import type { FlexHost, FlexRun } from "../../volumes/plugins/flex-driver.ts";
import { parseFlexAnswer, quote } from "../../volumes/plugins/flex-protocol.ts";
import { Slots } from "../../volumes/plugins/slots.ts";
import { VolumeError } from "../errors.ts";

/** What a FlexVolume driver is asked for on a node; the controller's verbs are in `src/volumes`. */
export type FlexNodeVerb =
  "attach" | "detach" | "waitforattach" | "mountdevice" | "unmountdevice" | "mount" | "unmount" | "expandfs";

export interface FlexNodeCall {
  readonly verb: FlexNodeVerb;
  readonly args: readonly string[];
  /** Values that must not be repeated in an error, whatever the driver prints. */
  readonly secrets?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

type FlexNodeAnswer =
  { readonly kind: "success"; readonly device: string } | { readonly kind: "not-supported" };

/** Rejects with a VolumeError: uncertain where the driver was stopped in the middle. */
export type FlexNodeDriver = (call: FlexNodeCall) => Promise<FlexNodeAnswer>;

/** The kubelet waits for a device that long; the other verbs get what a CSI call gets. */
const DEADLINE_MS: Readonly<Record<FlexNodeVerb, number>> = {
  attach: 120_000,
  detach: 120_000,
  waitforattach: 600_000,
  mountdevice: 120_000,
  unmountdevice: 120_000,
  mount: 120_000,
  unmount: 120_000,
  expandfs: 120_000,
};

/** Processes of one driver at once; the others wait in line. A node that starts with 500 pods must not start 500 scripts. */
const CALLS_AT_ONCE = 16;

/** One program: remembers which verbs it does not have, for as long as it is this program. */
export function createFlexNodeDriver(
  host: Pick<FlexHost, "exec">,
  { driver, file }: { readonly driver: string; readonly file: string },
): FlexNodeDriver {
  const slots = new Slots(CALLS_AT_ONCE);
  const unsupported = new Set<FlexNodeVerb>();

  return async (call) => {
    if (unsupported.has(call.verb)) return { kind: "not-supported" };
    const run = await slots.run(() => exec(host, file, driver, call), call.signal);
    const answer = judge(run, driver, call);
    if (answer.kind === "not-supported") unsupported.add(call.verb);
    return answer;
  };
}

async function exec(
  host: Pick<FlexHost, "exec">,
  file: string,
  driver: string,
  { verb, args, signal }: FlexNodeCall,
): Promise<FlexRun> {
  try {
    return await host.exec(file, [verb, ...args], { deadlineMs: DEADLINE_MS[verb], signal });
  } catch (error) {
    const wasStopped = signal.aborted || ["ETIMEDOUT", "EFBIG"].includes(systemCode(error) ?? "");
    const text = error instanceof Error ? error.message : String(error);
    throw new VolumeError(
      wasStopped ? "uncertain" : "final",
      `FlexVolume driver ${driver}, ${verb}: ${text}`,
      {
        cause: error,
      },
    );
  }
}

/** The worse of answer and exit code is believed. */
function judge(run: FlexRun, driver: string, call: FlexNodeCall): FlexNodeAnswer {
  const answer = parseFlexAnswer(run.stdout.trim() === "" ? run.stderr : run.stdout);
  const ended = run.code === undefined ? "ended by a signal" : `exit code ${run.code}`;
  const fail = (reason: string) =>
    new VolumeError(
      "final",
      scrub(`FlexVolume driver ${driver}: ${call.verb} command failed, ${reason}`, call.secrets),
    );
  if (answer.kind === "not-supported") return answer;
  if (answer.kind !== "success") throw fail(`${answer.reason} (${ended})`);
  if (run.code !== 0) throw fail(`it answered Success, but ${ended}; stderr ${quote(run.stderr)}`);
  return { kind: "success", device: answer.device };
}

/** Three letters or less are as likely a word as a secret. */
const SECRET_CHARS_MIN = 4;

function scrub(text: string, secrets: readonly string[] = []): string {
  return secrets
    .filter((secret) => secret.length >= SECRET_CHARS_MIN)
    .reduce((scrubbed, secret) => scrubbed.replaceAll(secret, "***"), text);
}
