/** The header for a token, without the line break that files and block texts end in; undefined if it cannot be one. */
export function toBearer(token: string): string | undefined {
  const trimmed = token.trim();
  return /^[\x21-\x7e]+$/.test(trimmed) ? `Bearer ${trimmed}` : undefined;
}

export function toBasic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
