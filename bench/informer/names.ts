/** Names by number, and back where somebody asks by name. All in the forms that real clusters have. */

const NAMESPACES = 200;

export function namespaceOf(index: number): string {
  return `team-${String(index % NAMESPACES).padStart(3, "0")}-production`;
}

export function nodeName(index: number): string {
  const [a, b, c] = [(index >> 16) & 255, (index >> 8) & 255, index & 255];
  return `ip-10-${a}-${b}-${c}.eu-central-1.compute.internal`;
}

/** As a ReplicaSet makes them; the last part is the index, in base 36. */
export function podName(workload: string, index: number): string {
  return `${workload}-${index.toString(36).padStart(5, "0")}`;
}

export function podIndex(name: string): number {
  return Number.parseInt(name.slice(name.lastIndexOf("-") + 1), 36);
}

export const DRIVER = "ebs.csi.aws.com";

/** As `status.volumesAttached` names it. */
export function uniqueVolumeName(handle: string): string {
  return `kubernetes.io/csi/${DRIVER}^${handle}`;
}
