import type { PodSpec } from "kubernetes-types/core/v1.js";
import { causeIf, duplicate, invalidValue, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";

const LENGTH_MAX = 253;
const SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const NAME = `^(${SEGMENT}[\\./])*${SEGMENT}$`;
const PATTERN = new RegExp(NAME);

/** Kernel parameters that belong to the IPC namespace; those of the network one begin with `net.`. */
const OF_IPC = /^(kernel\.(sem|shm.*|msg.*)|fs\.mqueue\..*)$/;

/** Each is named once and well, and none belongs to a namespace that the pod shares with its host. */
export function validateSysctls(field: string, spec: Loose<PodSpec>): Cause[] {
  const { sysctls = [] } = spec.securityContext ?? {};
  const names = sysctls.map(({ name = "" }) => name);
  return names.flatMap((name, index) => {
    const path = `${field}[${index}].name`;
    const dotted = normalized(name);
    return [
      ...nameCauses(path, name, names.indexOf(name) < index),
      ...causeIf(
        spec.hostNetwork === true && dotted.startsWith("net."),
        invalidValue(path, name, "may not be specified when 'hostNetwork' is true"),
      ),
      ...causeIf(
        spec.hostIPC === true && OF_IPC.test(dotted),
        invalidValue(path, name, "may not be specified when 'hostIPC' is true"),
      ),
    ];
  });
}

function nameCauses(path: string, name: string, isSecond: boolean): Cause[] {
  if (name === "") return [required(path)];
  if (name.length > LENGTH_MAX || !PATTERN.test(name))
    return [invalidValue(path, name, `must have at most ${LENGTH_MAX} characters and match regex ${NAME}`)];
  return causeIf(isSecond, duplicate(path, name));
}

/** `net/ipv4/conf/eno2.100/rp_filter` is `net.ipv4.conf.eno2/100.rp_filter` as sysctl(8) also writes it. */
function normalized(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === "/" ? name.replace(/[./]/g, (found) => (found === "." ? "/" : ".")) : name;
}
