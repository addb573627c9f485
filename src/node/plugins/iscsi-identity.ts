import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import { sourceOf } from "./sources.ts";

/** One LUN of one target, and the ways to it. */
export interface IscsiIdentity {
  /** As somebody wrote it: the volume's name is made of this, here and in the controller. */
  readonly targetPortal: string;
  /** Each with its port; the first is the target portal's. */
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  readonly iface: string;
  /** Where `iface` is made for this volume alone: the one it is made after, and its initiator. */
  readonly ownIface?: { readonly after: string; readonly initiatorName: string } | undefined;
}

const DEFAULT_PORT = 3260;
const PORTAL = /^[A-Za-z0-9[][A-Za-z0-9.:[\]_%-]*$/;
const TARGET = /^(iqn|eui|naa)\.[A-Za-z0-9.:_-]+$/;
const INTERFACE = /^[A-Za-z0-9[][A-Za-z0-9.:[\]_%-]*$/;

/** All of it becomes arguments and directory names, so what is no such name is refused. */
export function iscsiIdentity(spec: VolumeSpec): IscsiIdentity {
  const source = sourceOf(spec, "iscsi");
  const {
    targetPortal = "",
    portals = [],
    iqn = "",
    lun = 0,
    iscsiInterface = "default",
    initiatorName,
  } = source ?? {};
  const ways = [...new Set([targetPortal, ...portals].map(withPort))];
  const iface = initiatorName ? `${ways[0] ?? ""}:${specName(spec)}` : iscsiInterface;
  const isFine =
    [...ways, targetPortal].every((portal) => PORTAL.test(portal)) &&
    TARGET.test(iqn) &&
    Number.isInteger(lun) &&
    lun >= 0 &&
    INTERFACE.test(iface) &&
    INTERFACE.test(iscsiInterface);
  if (!isFine || /\s/.test(initiatorName ?? ""))
    throw new VolumeError(
      "final",
      `iscsi volume ${specName(spec)}: portal, iqn, lun or interface is no such name`,
    );
  const ownIface = initiatorName ? { after: iscsiInterface, initiatorName } : undefined;
  return { targetPortal, portals: ways, iqn, lun, iface, ownIface };
}

export function withPort(portal: string): string {
  const isBareIpv6 =
    portal.includes(":") && !portal.startsWith("[") && portal.indexOf(":") !== portal.lastIndexOf(":");
  const host = isBareIpv6 ? `[${portal}]` : portal;
  return /:\d+$/.test(host.replace(/^\[.*\]/, "x")) ? host : `${host}:${DEFAULT_PORT}`;
}

/** `iface-default/10.0.0.1:3260-iqn.2026-01.org.example:disk-lun-0` */
export function iscsiDirectory({ portals: [portal = ""], iqn, lun, iface }: IscsiIdentity): string {
  return `iface-${iface}/${portal}-${iqn}-lun-${lun}`;
}

/**
 * Read back from a directory's name. Hosts may contain dashes, so what divides is where the target's name begins; a
 * private interface ends in the volume's name, and its initiator is not told.
 */
export function parseIscsiDirectory(directory: string): IscsiIdentity | undefined {
  const [, iface, portal, iqn, lun] =
    /^iface-([^/]+)\/([^/]+?)-((?:iqn|eui|naa)\.[^/]+)-lun-(\d+)$/.exec(directory) ?? [];
  if (iface === undefined || portal === undefined || iqn === undefined) return undefined;
  return { targetPortal: portal, portals: [portal], iqn, lun: Number(lun), iface };
}

/** What the volume may have been called: its port may have been left out by whoever wrote it. */
export function iscsiVolumeNames({ targetPortal, iqn, lun }: IscsiIdentity): readonly string[] {
  const bare = targetPortal.replace(new RegExp(`:${DEFAULT_PORT}$`), "");
  const unbracketed = bare.replace(/^\[(.*)\]$/, "$1");
  return [...new Set([targetPortal, bare, unbracketed])].map((portal) => `${portal}:${iqn}:${lun}`);
}
