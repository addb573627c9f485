import { createClient, type Channel } from "../../csi/methods.ts";
import { Registration, type PluginInfo } from "../../csi/gen/pluginregistration_pb.ts";
import { compareVersions, tellPlugin } from "../../csi/registration.ts";

/** Who is behind a registration socket, and whether we go on with it. */
export type Introduction =
  | { readonly kind: "driver"; readonly name: string; readonly endpoint: string; readonly version: string }
  /** Another component's: a kubelet beside us watches the same folder, and our refusal would make its plugin exit. */
  | { readonly kind: "not-ours"; readonly type: string }
  | { readonly kind: "refused"; readonly error: string };

/** Upstream's deadlines. */
const DIAL_MS = 10_000;
const INFO_MS = 1_000;
const NOTIFY_MS = 5_000;

const OTHER_COMPONENTS: ReadonlySet<string> = new Set(["DevicePlugin", "DRAPlugin"]);

export async function introduce(
  channel: Channel,
  socketPath: string,
  signal: AbortSignal,
): Promise<Introduction> {
  await channel.ready({ timeoutMs: DIAL_MS, signal });
  return judge(
    await createClient(Registration, channel).getInfo({}, { timeoutMs: INFO_MS, signal }),
    socketPath,
  );
}

export function judge(
  { type, name, endpoint, supportedVersions }: PluginInfo,
  socketPath: string,
): Introduction {
  if (OTHER_COMPONENTS.has(type)) return { kind: "not-ours", type };
  if (type !== "CSIPlugin") {
    const error = `RegisterPlugin error -- no handler registered for plugin type: ${type} at socket ${socketPath}`;
    return { kind: "refused", error };
  }
  if (name === "") return invalid("the plugin gives no name");
  const version = highestUsable(supportedVersions);
  if (version === undefined) {
    const offered = supportedVersions.slice(0, 10).join(", ");
    return invalid(`none of the versions [${offered}] of ${name} is a 1.x`);
  }
  return { kind: "driver", name, endpoint: endpoint || socketPath, version };
}

/** Whether a driver may take the place of one that another socket, still there, has registered. */
export function mayReplace(
  found: { readonly name: string; readonly version: string },
  current: { readonly version: string; readonly socketPath: string },
): Introduction | undefined {
  if (compareVersions(found.version, current.version) > 0) return undefined;
  return invalid(
    `${found.name} is registered already by ${current.socketPath} with version ${current.version}, and ${found.version} is not higher`,
  );
}

function invalid(why: string): Introduction & { kind: "refused" } {
  return { kind: "refused", error: `RegisterPlugin error -- plugin validation failed with err: ${why}` };
}

/** The highest 1.x; what does not parse, 0.x and 2.x and above are passed over. */
function highestUsable(versions: readonly string[]): string | undefined {
  const usable = versions.filter(
    (one) => compareVersions(one, "1.0.0") >= 0 && compareVersions(one, "2.0.0") < 0,
  );
  return usable.sort(compareVersions).at(-1);
}

export async function tellRefused(channel: Channel, error: string, signal: AbortSignal): Promise<void> {
  await tellPlugin(channel, { kind: "refused", error }, { timeoutMs: NOTIFY_MS, signal });
}

export async function tellRegistered(channel: Channel, signal: AbortSignal): Promise<void> {
  await tellPlugin(channel, { kind: "registered" }, { timeoutMs: NOTIFY_MS, signal });
}
