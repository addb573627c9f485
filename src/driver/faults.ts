import { chance, type Random } from "../base/random.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { codeOfNumber, CsiError, CSI_CODES, type CsiCode } from "../csi/errors.ts";
import type { CallContext, ServedMethod } from "../csi/methods.ts";
import { CONTEXT_VOLUME } from "./attachments.ts";
import { nearestRpc, RPC_NAMES } from "./rpc-names.ts";

/**
 * Faults on purpose, for people who test controllers and agents against a driver that misbehaves: `--faults
 * NodeStageVolume=slow:5s,ControllerPublishVolume=error:14@0.3`. Off unless asked for, and logged at every hit.
 */
export interface Fault {
  /** `NodeStageVolume`, or `*` for every call but Identity's. */
  readonly rpc: string;
  readonly effect: FaultEffect;
  /** In (0, 1]. */
  readonly probability: number;
}

export type FaultEffect =
  /** The answer comes late. */
  | { readonly kind: "slow"; readonly ms: number }
  /** Nothing is done and nothing is answered until the caller gives up. */
  | { readonly kind: "hang" }
  /** The work is done, and the answer lost. */
  | { readonly kind: "lost" }
  /** The publish context names a device that is another volume's. */
  | { readonly kind: "wrong-device" }
  /** Nothing is done and this code answered. */
  | { readonly kind: "error"; readonly code: CsiCode };

/** `RPC=slow:MS|hang|lost|wrong-device|error:CODE[@PROBABILITY]`, separated by commas; a text says what is wrong. */
export function parseFaults(text: string, parseMs: (text: string) => number | undefined): Fault[] | string {
  const faults: Fault[] = [];
  for (const part of text.split(",").filter((one) => one !== "")) {
    const match = /^([A-Za-z]+|\*)=([a-z-]+)(?::([^@]+))?(?:@(\d*\.?\d+))?$/.exec(part);
    const probability = Number(match?.[4] ?? 1);
    const effect = match === null ? undefined : toEffect(match[2] ?? "", match[3], parseMs);
    if (match === null || effect === undefined || !(probability > 0 && probability <= 1)) {
      return `${JSON.stringify(part)} is not RPC=slow:5s, hang, lost, wrong-device or error:14, with @0.3 for a share of calls`;
    }
    const rpc = match[1] ?? "";
    const misuse = misuseOf(rpc, effect);
    if (misuse !== undefined) return `${JSON.stringify(part)}: ${misuse}`;
    faults.push({ rpc, effect, probability });
  }
  return faults;
}

/** A fault that can never hit looks like a driver that copes with it. */
function misuseOf(rpc: string, effect: FaultEffect): string | undefined {
  if (rpc !== "*" && !RPC_NAMES.includes(rpc))
    return `there is no call ${rpc} in CSI; did you mean ${nearestRpc(rpc)}?`;
  if (effect.kind === "wrong-device" && rpc !== "*" && rpc !== PUBLISHES)
    return `only ${PUBLISHES} answers with a device`;
  return undefined;
}

const PUBLISHES = "ControllerPublishVolume";

function toEffect(
  kind: string,
  argument: string | undefined,
  parseMs: (text: string) => number | undefined,
): FaultEffect | undefined {
  if (kind === "slow") {
    const ms = parseMs(argument ?? "");
    return ms === undefined || ms < 0 ? undefined : { kind, ms };
  }
  if (kind === "error") {
    const code = /^\d+$/.test(argument ?? "") ? codeOfNumber(Number(argument)) : argument;
    return Object.hasOwn(CSI_CODES, code ?? "") ? { kind, code: code as CsiCode } : undefined;
  }
  if (argument !== undefined) return undefined;
  return kind === "hang" || kind === "lost" || kind === "wrong-device" ? { kind } : undefined;
}

export interface FaultDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export function withFaults(
  { clock, random, log }: FaultDeps,
  served: readonly ServedMethod[],
  faults: readonly Fault[],
): readonly ServedMethod[] {
  if (faults.length === 0) return served;
  log.warn("FAULT INJECTION IS ON: this driver misbehaves on purpose", { faults: faults.length });
  return served.map((method) => {
    const mine = faults.filter(({ rpc }) => applies(rpc, method.path));
    if (mine.length === 0) return method;
    const handler = async (request: never, context: CallContext) => {
      const hits = mine.filter(({ probability }) => chance(random, probability));
      for (const { effect } of hits) log.warn("fault injected", { path: method.path, fault: effect.kind });
      for (const { effect } of hits) await before(clock, effect, context);
      const answer = await (method.handler(request, context) as Promise<object>);
      return hits.reduce((current, { effect }) => after(effect, current), answer);
    };
    return { ...method, handler: handler as ServedMethod["handler"] };
  });
}

function applies(rpc: string, path: string): boolean {
  const [, service = "", name = ""] = path.split("/");
  return rpc === "*" ? !service.endsWith(".Identity") : rpc === name;
}

async function before(clock: Clock, effect: FaultEffect, { signal }: CallContext): Promise<void> {
  if (effect.kind === "slow") await clock.sleep(effect.ms);
  if (effect.kind === "error") throw new CsiError(effect.code, "an error on purpose (--faults)");
  if (effect.kind !== "hang") return;
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  throw new CsiError("UNAVAILABLE", "hung on purpose (--faults)");
}

function after(effect: FaultEffect, answer: object): object {
  if (effect.kind === "lost")
    throw new CsiError("UNAVAILABLE", "done, but the answer was lost on purpose (--faults)");
  if (effect.kind !== "wrong-device" || !("publishContext" in answer)) return answer;
  return { ...answer, publishContext: { [CONTEXT_VOLUME]: "vol-00000000-0000-4000-8000-000000000000" } };
}
