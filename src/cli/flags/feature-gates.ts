import { InvalidArgumentError, Option } from "commander";

export type FeatureGates<G extends string> = Readonly<Record<G, boolean>>;

/** `--feature-gates=A=true,B=false`, as Kubernetes programs have it; a gate nobody knows is a mistake worth ending for. */
export function featureGatesOption<G extends string>(defaults: FeatureGates<G>): Option {
  const names = Object.keys(defaults);
  return new Option(
    "--feature-gates <gates>",
    `NAME=true or NAME=false, separated by commas: ${names.join(", ")}`,
  )
    .default(defaults, "upstream's")
    .argParser((text, before: FeatureGates<G>) => {
      const given = text.split(",").filter((item) => item.trim() !== "");
      return { ...before, ...Object.fromEntries(given.map((item) => parseGate(item, names))) };
    });
}

function parseGate(item: string, names: readonly string[]): [string, boolean] {
  const [name = "", value] = item.split("=").map((part) => part.trim());
  if (!names.includes(name)) {
    throw new InvalidArgumentError(
      `There is no gate ${JSON.stringify(name)}; there are ${names.join(" and ")}.`,
    );
  }
  if (value !== "true" && value !== "false")
    throw new InvalidArgumentError(`Give ${name}=true or ${name}=false.`);
  return [name, value === "true"];
}
