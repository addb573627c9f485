// docs/mutants.md, and the names that violations begin with.
import { renderPromises } from "./promises.mjs";

/** Violations begin with the name of what saw them; an assertion of the product has the name of its process there. */
export function checkerOf(violation) {
  const [, name = ""] = /^([a-z-]+): /.exec(violation) ?? [];
  return /^(controller-\d|attacher|companions|san-driver|node-\d.*)$/.test(name)
    ? "assertion"
    : name || "other";
}

/** By mutant, from a page. */
export function readVerdicts(page) {
  const rows = page.matchAll(
    /^\| `([a-z-]+)` +\| .* \| (?:`([a-z-]+)`|(the test)|\*\*SURVIVED\*\*) +\| +(\d*) +\| \S+ +\|$/gm,
  );
  return [...rows].map(([, id, name, test, seeds]) => {
    const checker = name ?? test;
    const kind = checker === undefined ? "SURVIVED" : "caught";
    return [id, { kind, checker, ...(seeds !== "" && { seeds: Number(seeds) }) }];
  });
}

export function renderPage(mutants, profiles, verdicts) {
  const rows = mutants.map(({ id, promise, profile = "usual", test, of, without = [] }) => {
    const { kind, checker, seeds } = verdicts.get(id) ?? { kind: "not run" };
    const seen = kind !== "caught" ? `**${kind}**` : test === undefined ? `\`${checker}\`` : checker;
    const judge = test === undefined ? profile : `\`${test}\``;
    const left = without.flatMap(({ about }) => (about === undefined ? [] : [`without ${about}`]));
    const notes = [...(of ? [of] : []), ...left].join("; ");
    return `| \`${id}\` | ${promise}${notes && ` (${notes})`} | ${seen} | ${seeds ?? ""} | ${judge} |`;
  });
  return [
    "# Mutants",
    "",
    "What shows that the simulator's checkers can see: each mutant takes one safety rule out of the product's code, and seeds of the",
    "simulated cluster are run until a checker reports a violation that the unchanged code does not have on the same seed.",
    "",
    "```",
    "npm run mutants                            # all; exit 1 if one survives",
    "npm run mutants -- --only id,id --verbose  # some, with what was seen",
    "npm run mutants -- --write                 # and this page; what was not run stays as it is here",
    "npm run mutants -- --write --resume        # without those that this very build has caught",
    "npm run mutants -- --shard 1/3             # every third; --minutes bounds each, --seeds too",
    "```",
    "",
    "A seed is run up to its first violation, and on the unchanged code only where there is one. Where two rules guard one promise, the",
    "mutant takes one out and runs without the other; so does the unchanged code that it is compared with. Where what a rule guards against",
    "never happens in the simulated cluster, a test file is run instead of seeds, on the mutant and on the unchanged code. W-1 to W-8 are",
    "known weaknesses of the original controller. Seeds are 1, 2, 3, ... in this order. Plans that the seeds are run with:",
    "",
    ...Object.entries(profiles).map(([name, { about }]) => `- \`${name}\`: ${about}`),
    "",
    "| mutant | the promise it breaks | seen by | seeds | plan or test |",
    "|---|---|---|---|---|",
    ...rows,
    "",
    ...renderPromises(),
  ].join("\n");
}
