// Module hooks of a process that runs a mutant: the changed modules come from memory, all others from dist/.
const changed = new Map();

export function initialize(modules) {
  for (const { url, source } of modules) changed.set(url, source);
}

export async function load(url, context, next) {
  const source = changed.get(url);
  return source === undefined ? next(url, context) : { format: "module", source, shortCircuit: true };
}
