/** What a FlexVolume driver said of itself when it was initialised. */
export interface FlexCapabilities {
  readonly attach: boolean;
  readonly selinuxRelabel: boolean;
  readonly supportsMetrics: boolean;
  readonly fsGroup: boolean;
  readonly requiresFsResize: boolean;
}

/** What a driver does not mention it has, statistics excepted. Names count whatever their case, as in Go. */
export function parseFlexCapabilities(initOutput: string): FlexCapabilities {
  const said = fieldsOf(fieldsOf(parseJson(initOutput))["capabilities"]);
  const flag = (name: string, otherwise: boolean) => {
    const value = said[name];
    return typeof value === "boolean" ? value : otherwise;
  };
  return {
    attach: flag("attach", true),
    selinuxRelabel: flag("selinuxrelabel", true),
    supportsMetrics: flag("supportsmetrics", false),
    fsGroup: flag("fsgroup", true),
    requiresFsResize: flag("requiresfsresize", true),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name.toLowerCase(), field as unknown]),
  );
}
