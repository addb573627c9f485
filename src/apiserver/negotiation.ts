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

/**
 * This server answers in JSON. An Accept list is fine if any element allows plain JSON; elements that
 * ask for tables, metadata alone or protobuf are passed over, since their senders all name JSON after
 * them. A list with nothing for us is 406.
 */
export function checkAccept(header = ""): void {
  const elements = header.split(",").map((element) => element.trim());
  if (header.trim() === "" || elements.some(allowsJson)) return;
  throw new StatusError(406, "406: Not Acceptable\n\nAvailable representations: application/json", {
    details: {},
  });
}

function allowsJson(element: string): boolean {
  const [type, ...parameters] = element.split(";").map((part) => part.trim().toLowerCase());
  if (type !== "application/json" && type !== "*/*") return false;
  return !parameters.some((parameter) => parameter.startsWith("as=") || /^q=0(\.0*)?$/.test(parameter));
}
