/** An IP address as a number. */
export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** Undefined for what is none: with a zone, with leading zeros, or an IPv4 address dressed up as IPv6. */
export function parseAddress(text: string): Address | undefined {
  if (!text.includes(":")) {
    const value = parseDotted(text);
    return value === undefined ? undefined : { family: 4, value };
  }
  const value = parseColons(text);
  return value === undefined || value >> 32n === 0xffffn ? undefined : { family: 6, value };
}

function parseDotted(text: string): bigint | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return undefined;
  }
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** Eight groups, of which one run of zeros may be `::`, and the last two an IPv4 address. */
function parseColons(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = [], tail] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const last = tail ?? head;
  const dotted = last.at(-1)?.includes(".") === true ? parseDotted(last.pop() ?? "") : undefined;
  if (dotted !== undefined) last.push((dotted >> 16n).toString(16), (dotted & 0xffffn).toString(16));
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array.from({ length: missing }, () => "0"), ...(tail ?? [])];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

/** In its one canonical form: RFC 5952 for IPv6. */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
  const { start, length } = longestZeros(groups);
  if (length < 2) return groups.join(":");
  return `${groups.slice(0, start).join(":")}::${groups.slice(start + length).join(":")}`;
}

function longestZeros(groups: readonly string[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (groups[end] === "0") end++;
    if (end - start > best.length) best = { start, length: end - start };
  }
  return best;
}
