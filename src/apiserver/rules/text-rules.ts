import { tooLong, invalidFor, required, type Cause } from "./causes.ts";

/**
 * The forms that names, keys and values of the API have. Each function returns what is wrong, in the
 * sentences of the real server, because people search for them; an empty list means nothing is.
 */

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CONFIG_KEY = "[-._a-zA-Z0-9]+";

const LABEL_PATTERN = whole(LABEL);
const LABEL_1035_PATTERN = whole(LABEL_1035);
const SUBDOMAIN_PATTERN = whole(SUBDOMAIN);
const QUALIFIED_PATTERN = whole(QUALIFIED);
const LABEL_VALUE_PATTERN = whole(`(${QUALIFIED})?`);
const CONFIG_KEY_PATTERN = whole(CONFIG_KEY);

export function subdomainProblems(value: string): string[] {
  return [
    ...longerThan(value, 253),
    ...unlike(
      SUBDOMAIN_PATTERN,
      value,
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
        `start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
    ),
  ];
}

export function labelProblems(value: string): string[] {
  return [
    ...longerThan(value, 63),
    ...unlike(
      LABEL_PATTERN,
      value,
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
        `with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
    ),
  ];
}

/** Of a Service: what every name server takes, so no digit in front. */
export function label1035Problems(value: string): string[] {
  return [
    ...longerThan(value, 63),
    ...unlike(
      LABEL_1035_PATTERN,
      value,
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
        `and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${LABEL_1035}')`,
    ),
  ];
}

/** Of a name that goes into a path: anything but what a path would take apart. */
export function pathSegmentProblems(value: string): string[] {
  if (value === "." || value === "..") return [`may not be '${value}'`];
  return ["/", "%"].filter((character) => value.includes(character)).map((one) => `may not contain '${one}'`);
}

const QUALIFIED_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`;

/** `[prefix/]name`: keys of labels and annotations, finalizers, provisioners. */
export function qualifiedNameProblems(value: string): string[] {
  const parts = value.split("/");
  if (parts.length > 2) {
    return [
      `a qualified name ${QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? "";
  const prefix = parts.length === 2 ? parts[0] : undefined;
  return [
    ...(prefix === "" ? ["prefix part must be non-empty"] : []),
    ...(prefix === undefined || prefix === ""
      ? []
      : subdomainProblems(prefix).map((text) => `prefix part ${text}`)),
    ...(name === "" ? ["name part must be non-empty"] : []),
    ...longerThan(name, 63).map((text) => `name part ${text}`),
    ...unlike(QUALIFIED_PATTERN, name, `name part ${QUALIFIED_TEXT}`),
  ];
}

export function labelValueProblems(value: string): string[] {
  return [
    ...longerThan(value, 63),
    ...unlike(
      LABEL_VALUE_PATTERN,
      value,
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " +
        `validation is '(${QUALIFIED})?')`,
    ),
  ];
}

/** Keys of ConfigMaps and Secrets: they become file names. */
export function configKeyProblems(value: string): string[] {
  if (value === "." || value === "..") return [`must not be '${value}'`];
  return [
    ...longerThan(value, 253),
    ...unlike(
      CONFIG_KEY_PATTERN,
      value,
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  " +
        `or 'key-name', regex used for validation is '${CONFIG_KEY}')`,
    ),
    ...(value.startsWith("..") ? ["must not start with '..'"] : []),
  ];
}

/** Of a port: an IANA service name. */
export function portNameProblems(value: string): string[] {
  return [
    ...longerThan(value, 15),
    ...(/^[-a-z0-9]+$/.test(value)
      ? []
      : ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]),
    ...(/[a-z]/.test(value) ? [] : ["must contain at least one letter (a-z)"]),
    ...(value.includes("--") ? ["must not contain consecutive hyphens"] : []),
    ...(/^-|-$/.test(value) ? ["must not begin or end with a hyphen"] : []),
  ];
}

export function envNameProblems(value: string): string[] {
  if (/^[ -<>-~]*$/.test(value)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

export function ipProblems(value: string): string[] {
  const isIpv6 = /^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$/.test(value) && URL.canParse(`http://[${value}]/`);
  if (isIpv6 || IPV4.test(value)) return [];
  return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];
}

/** The name of a CSI driver: 63 bytes, so that it fits a label, in either case. */
export function driverNameCauses(field: string, name = ""): Cause[] {
  return [
    ...(name === "" ? [required(field)] : []),
    ...(name.length > 63 ? [tooLong(field, 63)] : []),
    ...invalidFor(field, name, subdomainProblems(name.toLowerCase())),
  ];
}

function whole(pattern: string): RegExp {
  return new RegExp(`^${pattern}$`);
}

function longerThan(value: string, charactersMax: number): string[] {
  return value.length > charactersMax ? [`must be no more than ${charactersMax} characters`] : [];
}

/** A text of 1,024 characters is beyond every limit above and not matched: its length is what is wrong. */
function unlike(pattern: RegExp, value: string, text: string): string[] {
  return value.length > 1_024 || pattern.test(value) ? [] : [text];
}
