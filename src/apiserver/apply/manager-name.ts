/** As long as a `fieldManager` may be. */
const NAME_BYTES_MAX = 128;

/** Who writes: what the request says, or else the program that its User-Agent begins with. */
export function managerName({
  fieldManager,
  userAgent = "",
}: {
  readonly fieldManager: string | null | undefined;
  readonly userAgent: string | undefined;
}): string {
  if (fieldManager !== null && fieldManager !== undefined && fieldManager !== "") return fieldManager;
  const [program = ""] = userAgent.split("/", 1);
  return shorten(program.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "")) || "unknown";
}

function shorten(name: string): string {
  let bytes = 0;
  let kept = "";
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > NAME_BYTES_MAX) break;
    kept += character;
  }
  return kept;
}
