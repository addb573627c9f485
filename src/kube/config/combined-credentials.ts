import { anonymous, type Credential, type Credentials } from "../transport/access.ts";

/** Never changes. */
export function fixedCredentials(credential: Credential): Credentials {
  return { current: async () => credential, rejected: () => false };
}

/**
 * Several sources as one: a certificate from here, a token from there. Where two have the same, the earlier wins.
 * The answer is the same object until a source answers something new.
 */
export function combineCredentials(sources: readonly Credentials[]): Credentials {
  const [first = anonymous] = sources;
  if (sources.length <= 1) return first;
  const partsOf = new WeakMap<Credential, readonly Credential[]>();
  let latest: Credential | undefined;

  return {
    async current(signal) {
      const parts = await Promise.all(sources.map((source) => source.current(signal)));
      const known = latest === undefined ? undefined : partsOf.get(latest);
      if (latest !== undefined && parts.every((part, index) => part === known?.[index])) return latest;
      latest = Object.assign({}, ...parts.toReversed()) as Credential;
      partsOf.set(latest, parts);
      return latest;
    },
    rejected(credential) {
      const parts = partsOf.get(credential);
      // Every source hears of it: the server does not say which half it disliked.
      const answers = sources.map((source, index) => {
        const part = parts?.[index];
        return part !== undefined && source.rejected(part);
      });
      return answers.includes(true);
    },
  };
}
