import { StatusError } from "./errors.ts";

/** The body of a POST, PUT or DELETE as JSON text; 415 for what this server cannot read. */
export function readBody(headers: Readonly<Record<string, string>>, body: string | Uint8Array): string {
  const type = mediaType(headers["content-type"]);
  if (type !== "" && type !== "application/json") {
    throw new StatusError(
      415,
      `the body of the request was in an unknown format (${type}) - accepted media types include: application/json`,
    );
  }
  return bodyText(body);
}

export function bodyText(body: string | Uint8Array): string {
  return typeof body === "string" ? body : new TextDecoder().decode(body);
}

/** Without parameters such as `charset`. */
export function mediaType(header = ""): string {
  return (header.split(";")[0] ?? "").trim().toLowerCase();
}
