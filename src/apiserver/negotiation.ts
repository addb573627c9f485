export function bodyText(body: string | Uint8Array): string {
  return typeof body === "string" ? body : new TextDecoder().decode(body);
}

/** Without parameters such as `charset`. */
export function mediaType(header = ""): string {
  return (header.split(";")[0] ?? "").trim().toLowerCase();
}
