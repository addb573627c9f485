import { isObject } from "../volumes/untrusted.ts";
import { field, objectsAt, textAt, timeAt } from "../views/fields.ts";
import type { MooringWait } from "../views/objects.ts";
import { ProcessError } from "./errors.ts";

const DEADLINE_MS = 10_000;

/** What `/debug/volumes` of a controller says that volumes wait for. */
export async function readControllerWaits(endpoint: string): Promise<readonly MooringWait[]> {
  return controllerWaits(
    await readJson(`${endpoint}/debug/volumes?waiting=true&limit=10000`, "mooring controller"),
  );
}

/** Whatever the answer looks like: an older or newer Mooring may say less. */
export function controllerWaits(answer: unknown): readonly MooringWait[] {
  const volumes = objectsAt(answer, "volumes").map((item) => waitOf("controller", item, ""));
  const unresolved = objectsAt(answer, "unresolved").map((item) =>
    waitOf("controller", item, textAt(item, "pod")),
  );
  return [...volumes, ...unresolved].flatMap((wait) => wait ?? []);
}

/** What `/debug/attachments` of an attacher says that attachments wait for. */
export async function readAttacherWaits(endpoint: string): Promise<readonly MooringWait[]> {
  return attacherWaits(
    await readJson(`${endpoint}/debug/attachments?waiting=true&limit=10000`, "mooring attacher"),
  );
}

export function attacherWaits(answer: unknown): readonly MooringWait[] {
  return objectsAt(answer, "attachments").flatMap((item) => waitOf("attacher", item, "") ?? []);
}

function waitOf(process: MooringWait["process"], item: object, pod: string): MooringWait | undefined {
  const wait = field(item, "waitingFor");
  if (!isObject(wait)) return undefined;
  return {
    process,
    volume: textAt(item, "volume"),
    persistentVolume: textAt(item, "persistentVolume"),
    node: textAt(item, "node"),
    pod,
    reason: textAt(wait, "reason"),
    frozen: field(wait, "frozen") === true,
    message: textAt(wait, "message"),
    sinceMs: timeAt(wait, "since"),
    untilMs: timeAt(wait, "until"),
  };
}

async function readJson(url: string, what: string): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch (error) {
    throw cannotAsk(url, what, error instanceof Error ? error.message : String(error));
  }
  const text = await answer.text();
  if (!answer.ok) throw cannotAsk(url, what, `it answers ${answer.status}`);
  try {
    return JSON.parse(text);
  } catch {
    throw cannotAsk(url, what, "its answer is not JSON");
  }
}

function cannotAsk(url: string, what: string, why: string): ProcessError {
  return new ProcessError(
    "NotWorking",
    `cannot ask ${what} at ${url}: ${why}; check the address, or leave the flag out to explain from objects alone`,
  );
}
