/**
 * Which of the controllers of this room run, as `--controllers` says it: the syntax and the names are those of
 * kube-controller-manager, so that what one of them is told to do the other can be told to leave.
 */
export const CONTROLLERS = [
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
  "namespace-controller",
  "garbage-collector-controller",
  "persistentvolumeclaim-protection-controller",
  "persistentvolume-protection-controller",
  "volumeattributesclass-protection-controller",
  "pod-garbage-collector-controller",
  "clusterrole-aggregation-controller",
  // Events end in the store of a real server, without a controller; here one deletes them.
  "event-expiry",
] as const;

export type ControllerName = (typeof CONTROLLERS)[number];

/** Names that kube-controller-manager had before 1.28 and still takes. */
const ALIASES: Readonly<Record<string, ControllerName>> = {
  serviceaccount: "serviceaccount-controller",
  "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
  namespace: "namespace-controller",
  garbagecollector: "garbage-collector-controller",
  "pvc-protection": "persistentvolumeclaim-protection-controller",
  "pv-protection": "persistentvolume-protection-controller",
  podgc: "pod-garbage-collector-controller",
  "clusterrole-aggregation": "clusterrole-aggregation-controller",
};

export const ALL_CONTROLLERS: ReadonlySet<ControllerName> = new Set(CONTROLLERS);

/**
 * `*` is all of them, `name` one, `-name` not that one; what is named counts wherever in the list it stands. A text
 * says what is wrong with the list.
 */
export function parseControllers(text: string): ReadonlySet<ControllerName> | string {
  const items = text.split(",").map((item) => item.trim());
  const unknown = items.filter((item) => item !== "*" && knownName(item) === undefined);
  if (unknown.length > 0) {
    const names = unknown.map((item) => JSON.stringify(item.replace(/^-/, ""))).join(", ");
    return `${names} is not in the list of known controllers: ${CONTROLLERS.join(", ")}.`;
  }
  const wanted = items.filter((item) => item !== "*" && !item.startsWith("-")).map(knownName);
  const unwanted = items.filter((item) => item.startsWith("-")).map(knownName);
  const isWanted = (name: ControllerName) =>
    wanted.includes(name) || (items.includes("*") && !unwanted.includes(name));
  return new Set(CONTROLLERS.filter(isWanted));
}

function knownName(item: string): ControllerName | undefined {
  const name = item.replace(/^-/, "");
  return (
    CONTROLLERS.find((known) => known === name) ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined)
  );
}
