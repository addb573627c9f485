/**
 * Bytes of warnings in one answer. The real server stops there too; clients show them line by line, and
 * Node's own limit on all headers of a response a client will read is 16 kB.
 */
const WARNING_BYTES_MAX = 4_096;

/** The value of the `warning` header for texts such as `unknown field "spec.foo"`; undefined if there are none. */
export function warningHeader(texts: readonly string[]): string | undefined {
  let [header, bytes] = ["", 0];
  for (const text of texts) {
    const value = `299 - "${toHeaderText(text)}"`;
    bytes += value.length + 2;
    if (bytes > WARNING_BYTES_MAX) break;
    header += header === "" ? value : `, ${value}`;
  }
  return header === "" ? undefined : header;
}

/** Header values are bytes: UTF-8, one character a byte, with nothing that could end the line. */
function toHeaderText(text: string): string {
  const escaped = text.replace(/\p{Cc}/gu, " ").replace(/["\\]/g, "\\$&");
  return Buffer.from(escaped, "utf8").toString("latin1");
}
