import { CsiError } from "./errors.ts";
import { Registration, type PluginInfo } from "./gen/pluginregistration_pb.ts";
import { createClient, serve, type CallOptions, type Channel, type ServedMethod } from "./methods.ts";

/**
 * How a driver becomes known to a node agent. The driver serves `Registration` on a socket of its own below the agent's
 * plugins_registry folder; the agent finds the socket, asks, checks, and tells how it ended.
 */

export interface Announcement {
  readonly driverName: string;
  /** The driver's CSI socket as the node agent sees it. */
  readonly endpoint: string;
}

export type RegistrationOutcome =
  | { readonly kind: "registered" }
  /** The driver must exit then, so that it is started and tried again. */
  | { readonly kind: "refused"; readonly error: string };

/** The driver's side. */
export function serveRegistration(
  { driverName, endpoint }: Announcement,
  onOutcome: (outcome: RegistrationOutcome) => void,
): ServedMethod[] {
  return serve(Registration, {
    // 1.0.0 stands for all of 1.x: kubelets compare it with nothing but other registrations of the same name.
    getInfo: async () => ({ type: CSI_PLUGIN, name: driverName, endpoint, supportedVersions: ["1.0.0"] }),
    notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
      onOutcome(pluginRegistered ? { kind: "registered" } : { kind: "refused", error });
      return {};
    },
  });
}

const CSI_PLUGIN = "CSIPlugin";

/** A plugin that a node agent may go on with. */
export interface FoundPlugin {
  readonly driverName: string;
  readonly endpoint: string;
  /** The highest 1.x of those it offers. */
  readonly version: string;
}

/** The node agent's side: asks who is behind a registration socket. A plugin of another kind is `undefined`. */
export async function askPlugin(
  channel: Channel,
  { socketPath, ...options }: CallOptions & { readonly socketPath: string },
): Promise<FoundPlugin | undefined> {
  const info = await createClient(Registration, channel).getInfo({}, options);
  if (info.type !== CSI_PLUGIN) return undefined;
  return { driverName: nameOf(info), endpoint: info.endpoint || socketPath, version: versionOf(info) };
}

/** Tells the plugin how it ended; a refusal makes it exit. */
export async function tellPlugin(
  channel: Channel,
  outcome: RegistrationOutcome,
  options: CallOptions,
): Promise<void> {
  const status =
    outcome.kind === "registered"
      ? { pluginRegistered: true }
      : { pluginRegistered: false, error: outcome.error };
  await createClient(Registration, channel).notifyRegistrationStatus(status, options);
}

function nameOf({ name }: PluginInfo): string {
  if (name !== "") return name;
  throw new CsiError("INVALID_ARGUMENT", "registration: the plugin gives no name");
}

function versionOf({ name, supportedVersions }: PluginInfo): string {
  const usable = supportedVersions.filter((version) => parseVersion(version)?.[0] === 1);
  const highest = usable.sort(compareVersions).at(-1);
  if (highest !== undefined) return highest;
  throw new CsiError(
    "INVALID_ARGUMENT",
    `registration of ${name}: none of its versions [${supportedVersions.slice(0, 10).join(", ")}] is a 1.x`,
  );
}

/** Below zero if `a` is the older one. What is no version is older than any. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parseVersion(a) ?? [], parseVersion(b) ?? []];
  const at = [0, 1, 2].find((part) => (left[part] ?? -1) !== (right[part] ?? -1));
  return at === undefined ? 0 : (left[at] ?? -1) - (right[at] ?? -1);
}

function parseVersion(version: string): number[] | undefined {
  const parts = /^v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?$/.exec(version);
  return parts === null ? undefined : [parts[1], parts[2], parts[3] ?? "0"].map(Number);
}
