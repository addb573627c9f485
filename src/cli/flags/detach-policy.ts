import { InvalidArgumentError, Option } from "commander";
import type { ControllerOptions } from "../../processes/controller.ts";
import { parseDuration } from "../durations.ts";

type DetachPolicy = ControllerOptions["detachPolicies"][number];

export function detachPolicyOption(): Option {
  return new Option(
    "--detach-policy <policy>",
    "when to take a volume from a node that still uses it: driver=NAME:RULE or storageclass=NAME:RULE with " +
      "never, when-fenced or after=DURATION as RULE; may be given several times, the first that matches counts",
  )
    .default([], "upstream's: after=6m0s")
    .argParser((text, before: readonly DetachPolicy[]) => addDetachPolicy(text, before));
}

/** Appends one policy; refuses a second one for the same target, of which only the first could ever count. */
export function addDetachPolicy(text: string, before: readonly DetachPolicy[]): readonly DetachPolicy[] {
  const policy = parseDetachPolicy(text);
  if (before.some(({ match }) => JSON.stringify(match) === JSON.stringify(policy.match))) {
    throw new InvalidArgumentError(`${targetOf(text)} has a policy already; give it one.`);
  }
  return [...before, policy];
}

function parseDetachPolicy(text: string): DetachPolicy {
  // The last colon: names contain none, but whoever writes one should read about the name.
  const at = text.lastIndexOf(":");
  if (at < 0) throw new InvalidArgumentError(`The rule is missing. ${SHAPE}`);
  return { match: parseMatch(text.slice(0, at)), force: parseRule(text.slice(at + 1)) };
}

const SHAPE =
  "Give driver=NAME:RULE or storageclass=NAME:RULE, where RULE is never, when-fenced or after=DURATION.";

/** What the API server admits as the name of a CSIDriver and of a StorageClass. */
const DRIVER = /^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?$/;
const STORAGE_CLASS = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function parseMatch(text: string): DetachPolicy["match"] {
  const [, kind, name = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  if (kind === "driver") {
    if (!DRIVER.test(name)) throw badName(name, "CSI driver, such as driver=ebs.csi.aws.com:never");
    return { kind: "driver", driver: name };
  }
  if (kind === "storageclass") {
    if (!STORAGE_CLASS.test(name)) throw badName(name, "StorageClass, such as storageclass=fast:never");
    return { kind: "storage-class", storageClass: name };
  }
  throw new InvalidArgumentError(`It begins with neither driver= nor storageclass=. ${SHAPE}`);
}

function badName(name: string, what: string): InvalidArgumentError {
  return new InvalidArgumentError(`${JSON.stringify(name)} is no name of a ${what}.`);
}

/** Below a second a node would lose its volumes while it is restarting its kubelet. */
const AFTER_MS_MIN = 1_000;

function parseRule(text: string): DetachPolicy["force"] {
  if (text === "never" || text === "when-fenced") return { kind: text };
  const duration = /^after=(.*)$/s.exec(text)?.[1];
  if (duration === undefined) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is no rule; it is never, when-fenced or after=DURATION.`,
    );
  }
  const ms = parseDuration(duration);
  if (ms === undefined) {
    throw new InvalidArgumentError(`${JSON.stringify(duration)} is no duration; write it like after=10m.`);
  }
  if (ms < AFTER_MS_MIN) throw new InvalidArgumentError("after= must be at least 1s.");
  return { kind: "after", ms };
}

function targetOf(text: string): string {
  return text.slice(0, text.lastIndexOf(":"));
}
