import { evaluationError } from "../errors.ts";
import { declare, type Library } from "../functions.ts";
import { formatAddress, parseAddress, type Address } from "../ip-address.ts";
import { OpaqueValue } from "../values.ts";

class IpValue extends OpaqueValue {
  readonly type = "net.IP";
  readonly address: Address;

  constructor(address: Address) {
    super();
    this.address = address;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof IpValue && formatAddress(other.address) === formatAddress(this.address);
  }
}

class CidrValue extends OpaqueValue {
  readonly type = "net.CIDR";
  readonly address: Address;
  readonly prefix: number;

  constructor(address: Address, prefix: number) {
    super();
    this.address = address;
    this.prefix = prefix;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof CidrValue && formatCidr(other) === formatCidr(this);
  }
}

/** IP addresses and ranges of them, as Kubernetes lets expressions look at them. */
export const ADDRESSES: Library = [
  declare("ip(string) net.IP", (text: string) => new IpValue(readAddress(text))),
  declare("isIP(string) bool", (text: string) => parseAddress(text) !== undefined),
  declare("ip.isCanonical(string) bool", (text: string) => formatAddress(readAddress(text)) === text),
  declare("string(net.IP) string", ({ address }: IpValue) => formatAddress(address)),
  declare("net.IP -> family() int", ({ address }: IpValue) => BigInt(address.family)),
  ...Object.entries({
    isUnspecified: ({ value }: Address) => value === 0n,
    isLoopback,
    isLinkLocalMulticast: (address: Address) => isWithin(address, "224.0.0.0/24", "ff02::/16"),
    isLinkLocalUnicast: (address: Address) => isWithin(address, "169.254.0.0/16", "fe80::/10"),
    isGlobalUnicast,
  }).map(([name, holds]) => declare(`net.IP -> ${name}() bool`, ({ address }: IpValue) => holds(address))),

  declare("cidr(string) net.CIDR", readCidr),
  declare("isCIDR(string) bool", (text: string) => parseCidr(text) !== undefined),
  declare("string(net.CIDR) string", (cidr: CidrValue) => formatCidr(cidr)),
  declare("net.CIDR -> containsIP(net.IP) bool", (cidr: CidrValue, { address }: IpValue) =>
    contains(cidr, address),
  ),
  declare("net.CIDR -> containsIP(string) bool", (cidr: CidrValue, text: string) =>
    contains(cidr, readAddress(text)),
  ),
  declare("net.CIDR -> containsCIDR(net.CIDR) bool", containsCidr),
  declare("net.CIDR -> containsCIDR(string) bool", (cidr: CidrValue, text: string) =>
    containsCidr(cidr, readCidr(text)),
  ),
  declare("net.CIDR -> ip() net.IP", ({ address }: CidrValue) => new IpValue(address)),
  declare("net.CIDR -> masked() net.CIDR", ({ address, prefix }: CidrValue) => {
    return new CidrValue(
      { ...address, value: networkOf(address, prefix) << hostBits(address, prefix) },
      prefix,
    );
  }),
  declare("net.CIDR -> prefixLength() int", ({ prefix }: CidrValue) => BigInt(prefix)),
];

function readAddress(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined)
    throw evaluationError(`IP Address ${JSON.stringify(text)} parse error during conversion from string`);
  return address;
}

function parseCidr(text: string): CidrValue | undefined {
  const [left = "", right = "", ...more] = text.split("/");
  const address = parseAddress(left);
  if (address === undefined || more.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(right)) return undefined;
  const prefix = Number(right);
  return prefix > bitsOf(address) ? undefined : new CidrValue(address, prefix);
}

function readCidr(text: string): CidrValue {
  const cidr = parseCidr(text);
  if (cidr === undefined)
    throw evaluationError(
      `network address parse error during conversion from string: ${JSON.stringify(text)}`,
    );
  return cidr;
}

function formatCidr({ address, prefix }: CidrValue): string {
  return `${formatAddress(address)}/${prefix}`;
}

function bitsOf({ family }: Address): number {
  return family === 4 ? 32 : 128;
}

function hostBits(address: Address, prefix: number): bigint {
  return BigInt(bitsOf(address) - prefix);
}

function networkOf(address: Address, prefix: number): bigint {
  return address.value >> hostBits(address, prefix);
}

function contains({ address: own, prefix }: CidrValue, address: Address): boolean {
  return own.family === address.family && networkOf(own, prefix) === networkOf(address, prefix);
}

function containsCidr(outer: CidrValue, inner: CidrValue): boolean {
  return inner.prefix >= outer.prefix && contains(outer, inner.address);
}

function isWithin(address: Address, ...ranges: readonly string[]): boolean {
  return ranges.some((range) => contains(readCidr(range), address));
}

function isLoopback(address: Address): boolean {
  return isWithin(address, "127.0.0.0/8", "::1/128");
}

/** Neither unspecified nor broadcast, loopback, multicast or of one link. */
function isGlobalUnicast(address: Address): boolean {
  if (address.value === 0n || isLoopback(address)) return false;
  return !isWithin(address, "255.255.255.255/32", "224.0.0.0/4", "ff00::/8", "169.254.0.0/16", "fe80::/10");
}
