import { join } from "node:path";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { IscsiIdentity } from "./iscsi-identity.ts";

/** What `iscsiadm` is asked for. Values of secrets are arguments of it, so no error repeats its arguments. */
export interface IscsiAdmin {
  /** `tcp`, or what the network card does itself. */
  transport(iface: string): Promise<string>;
  makeIface(identity: IscsiIdentity): Promise<void>;
  deleteIface(iface: string): Promise<void>;
  login(identity: IscsiIdentity, portal: string, chap: Chap): Promise<void>;
  logout(identity: IscsiIdentity, portal: string): Promise<void>;
  /** Hosts of the sessions with this target through this portal. */
  hostsOf(iqn: string, portal: string): Promise<readonly string[]>;
}

/** Keys and values for each of the two steps; empty where no password is asked for. */
export interface Chap {
  readonly discovery: readonly (readonly [string, string])[];
  readonly session: readonly (readonly [string, string])[];
}

/** A target that does not answer a login is given up after this. */
const CALL_MS_MAX = 60_000;
/** No such session or record: what should be gone is gone. */
const GONE = new Set([2, 21]);
/** The session is there already. */
const PRESENT = 15;

export function createIscsiAdmin(host: Host, signal: AbortSignal): IscsiAdmin {
  async function iscsiadm(
    what: string,
    args: readonly string[],
    fine: readonly number[] = [],
  ): Promise<string> {
    const { exitCode, stdout, stderr } = await host.programs.run("iscsiadm", args, {
      timeoutMs: CALL_MS_MAX,
      signal,
    });
    if (exitCode === 0 || fine.includes(exitCode)) return stdout;
    throw new VolumeError("final", `iscsi: ${what}: exit code ${exitCode}: ${firstLine(stderr)}`);
  }
  const update = (what: string, record: readonly string[], key: string, value: string) =>
    iscsiadm(what, [...record, "-o", "update", "-n", key, "-v", value]);
  const ifaceArgs = (iface: string) => ["-m", "iface", "-I", iface];
  const nodeArgs = ({ iqn, iface }: IscsiIdentity, portal: string) => [
    "-m",
    "node",
    "-p",
    portal,
    "-T",
    iqn,
    "-I",
    iface,
  ];

  return {
    async transport(iface) {
      const shown = await iscsiadm(`show interface ${iface}`, [...ifaceArgs(iface), "-o", "show"]);
      return /^iface\.transport_name\s*=\s*(\S+)/m.exec(shown)?.[1] ?? "tcp";
    },
    async makeIface({ iface, ownIface }) {
      if (ownIface === undefined) return;
      const shown = await iscsiadm(`show interface ${ownIface.after}`, [
        ...ifaceArgs(ownIface.after),
        "-o",
        "show",
      ]);
      await iscsiadm(`make interface ${iface}`, [...ifaceArgs(iface), "-o", "new"], [PRESENT]);
      for (const [key, value] of settingsIn(shown))
        await update(`set interface ${iface}`, ifaceArgs(iface), key, value);
      await update(`set interface ${iface}`, ifaceArgs(iface), "iface.initiatorname", ownIface.initiatorName);
    },
    async deleteIface(iface) {
      await iscsiadm(`delete interface ${iface}`, [...ifaceArgs(iface), "-o", "delete"], [...GONE]);
    },
    async login(identity, portal, chap) {
      const discovery = ["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", identity.iface];
      const node = nodeArgs(identity, portal);
      await iscsiadm(`discover at ${portal}`, [...discovery, "-o", "new"]);
      for (const [key, value] of chap.discovery) await update(`discover at ${portal}`, discovery, key, value);
      await iscsiadm(`discover at ${portal}`, [...discovery, "--discover"]);
      // Scanned by hand, so that only the LUN of this volume appears on the node and not all of the target's.
      await update(`log in at ${portal}`, node, "node.session.scan", "manual");
      for (const [key, value] of chap.session) await update(`log in at ${portal}`, node, key, value);
      await iscsiadm(`log in at ${portal}`, [...node, "--login"], [PRESENT]);
      // A reboot must not bring it back by itself: whoever wants it then asks for it.
      await update(`log in at ${portal}`, node, "node.startup", "manual");
    },
    async logout(identity, portal) {
      await iscsiadm(`log out at ${portal}`, [...nodeArgs(identity, portal), "--logout"], [...GONE]);
      await iscsiadm(`forget ${portal}`, [...nodeArgs(identity, portal), "-o", "delete"], [...GONE]);
    },
    hostsOf: (iqn, portal) => sessionHosts(host, iqn, portal),
  };
}

/** Empty ones are shown as `<empty>`; names and hardware belong to the interface they are of. */
function settingsIn(shown: string): readonly (readonly [string, string])[] {
  const lines = [...shown.matchAll(/^(iface\.\S+)\s*=\s*(\S+)/gm)];
  return lines.flatMap(([, key = "", value = ""]) =>
    value === "<empty>" || key === "iface.iscsi_ifacename" || key === "iface.initiatorname"
      ? []
      : [[key, value] as const],
  );
}

function firstLine(text: string): string {
  return (text.trim().split("\n")[0] ?? "").slice(0, 200);
}

const HOSTS = "/sys/class/iscsi_host";

/** As the kernel knows them: `iscsiadm` tells of sessions, but not of the host to scan. */
async function sessionHosts(host: Host, iqn: string, portal: string): Promise<readonly string[]> {
  const { files } = host;
  const read = async (path: string) => (await files.read(path))?.trim();
  const names = async (path: string, prefix: string) =>
    ((await files.list(path)) ?? []).map(({ name }) => name).filter((name) => name.startsWith(prefix));
  const hosts: string[] = [];
  for (const name of await names(HOSTS, "host"))
    for (const session of await names(join(HOSTS, name, "device"), "session")) {
      const device = join(HOSTS, name, "device", session);
      if ((await read(join(device, "iscsi_session", session, "targetname"))) !== iqn) continue;
      for (const connection of await names(device, "connection")) {
        const at = join(device, connection, "iscsi_connection", connection);
        const address = (await read(join(at, "persistent_address"))) ?? "";
        const port = (await read(join(at, "persistent_port"))) ?? "";
        if (`${address.includes(":") ? `[${address}]` : address}:${port}` === portal) hosts.push(name);
      }
    }
  return hosts;
}
