/** A name that is too long for its place loses its middle: both ends of `pvc-0a1b…9f3e` tell names apart. */
export function cutAt(name: string, head: number, tail: number): string {
  if (name.length <= head + tail + 1) return name;
  return `${name.slice(0, head)}…${name.slice(name.length - tail)}`;
}

export interface Cutter {
  /** At most `width` long; two names never look the same, and one always looks the same. */
  cut(name: string): string;
}

/** One way to cut any name to a width. */
type Cut = (name: string) => string;

/**
 * Cuts names to one width. A name that would then look like another one is cut elsewhere, so that the part that differs
 * is shown, and numbered where no part of that width does (`pvc-0a…~2`). `like` are names that are expected.
 */
export function createCutter(width: number, like: readonly string[] = []): Cutter {
  const shownAs = new Map<string, string>();
  const taken = new Map<string, string>();
  const room = width - 1;
  const best = bestCut(like, width);

  function unlike(name: string): string {
    const heads = Array.from({ length: room }, (_, at) => room - at);
    const candidates = [
      best,
      ...heads.map(
        (head): Cut =>
          (of) =>
            cutAt(of, head, room - head),
      ),
    ];
    const free = candidates.map((cut) => cut(name)).find((text) => (taken.get(text) ?? name) === name);
    if (free !== undefined) return free;
    for (let number = 2; ; number++) {
      const suffix = `…~${number}`;
      const text = `${name.slice(0, Math.max(1, width - suffix.length))}${suffix}`;
      if (!taken.has(text)) return text;
    }
  }

  return {
    cut(name) {
      if (name.length <= width) return name;
      const known = shownAs.get(name);
      if (known !== undefined) return known;
      const text = unlike(name);
      shownAs.set(name, text);
      taken.set(text, name);
      return text;
    },
  };
}

/** What the names of a list have in common is worth little room: no more than this is kept of it. */
const COMMON_MAX = 4;

/** The cut that tells these names apart, for all of them alike: both ends, or the end or the middle where they differ. */
function bestCut(names: readonly string[], width: number): Cut {
  const long = [...new Set(names)].filter((name) => name.length > width);
  const room = width - 1;
  const half = Math.ceil(room / 2);
  const bothEnds: Cut = (name) => cutAt(name, half, room - half);
  const [first = "", ...others] = long;
  if (others.length === 0) return bothEnds;
  const before = commonLength(first, others, (name, index) => name[index]);
  const after = commonLength(first, others, (name, index) => name.at(-1 - index));
  const beginning: Cut = (name) => cutAt(name, room, 0);
  const end: Cut = (name) => cutAt(name, COMMON_MAX, room - COMMON_MAX);
  const middle: Cut = (name) => `…${name.slice(before - 2, before + width - 4)}…`;
  const cuts = [
    ...(after > COMMON_MAX ? [beginning, ...(before > COMMON_MAX ? [middle] : [])] : []),
    ...(before > COMMON_MAX && after <= COMMON_MAX ? [end] : []),
    bothEnds,
  ];
  return cuts.find((cut) => new Set(long.map(cut)).size === long.length) ?? bothEnds;
}

/** From the beginning or from the end, as `at` counts. */
function commonLength(
  first: string,
  others: readonly string[],
  at: (name: string, index: number) => string | undefined,
): number {
  let length = 0;
  while (length < first.length && others.every((name) => at(name, length) === at(first, length))) length++;
  return length;
}

/** Names that machines make: `pvc-` with a UUID, `csi-` with a digest. Nobody reads their middle. */
const MADE_NAME = /[\w.]+-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,64})(?![\w])/g;

/** Digits at each end; more where two names would look the same. */
const DIGITS = [4, 6, 8, 12];

/** Made names in sentences become `pvc-0a1b…9f3e`: one way for one name, wherever it stands. */
export function createNameShortener(): (text: string) => string {
  const shownAs = new Map<string, string>();
  const taken = new Set<string>();

  function short(name: string): string {
    const prefix = name.search(/-[0-9a-f]{8}/) + 1;
    const text =
      DIGITS.map((digits) => cutAt(name, prefix + digits, digits)).find((item) => !taken.has(item)) ?? name;
    shownAs.set(name, text);
    taken.add(text);
    return text;
  }

  return (text) => text.replaceAll(MADE_NAME, (name) => shownAs.get(name) ?? short(name));
}
