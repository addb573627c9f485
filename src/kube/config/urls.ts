/** `host:6443` parses as a URL of scheme `host:`, so a missing scheme must be seen before. */
export function parseUrl(written: string, defaultScheme: string | undefined): URL | undefined {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(written);
  if (!hasScheme && defaultScheme === undefined) return undefined;
  const text = hasScheme ? written : `${defaultScheme}://${written}`;
  return URL.canParse(text) ? new URL(text) : undefined;
}
