import { describe, expect, test } from "vitest";
import defaults from "../../../test/fixtures/apiserver/recordings/02-create-defaults.json" with { type: "json" };
import createErrors from "../../../test/fixtures/apiserver/recordings/03-create-errors.json" with { type: "json" };
import updates from "../../../test/fixtures/apiserver/recordings/04-update-concurrency.json" with { type: "json" };
import validation from "../../../test/fixtures/apiserver/recordings/10-validation.json" with { type: "json" };
import admission from "../../../test/fixtures/apiserver/recordings/18-admission.json" with { type: "json" };
import { align, comparable, Replay, type Answer, type Step } from "./replay.testing.ts";

/**
 * What a real server (v1.26.5) answered, against what the rules say. Steps are replayed in order. Where
 * a later release is the target (spec/apiserver.md, section 21) the table says what is expected instead.
 */
type Expectation =
  /** Decided before the rules: undecodable, another media type, the options of the request, a read. */
  "elsewhere" | { readonly status: number; readonly causes?: readonly string[] };

const OK: Expectation = { status: 200 };

/** Refusals whose text a later release changed, or that the recording shortens. */
const OTHER_WORDS: Readonly<Record<string, readonly number[]>> = {
  "10-validation": [
    12, // the limit that is meant, not that of another field
    45, // <257 x>
    59, // ReadWriteOncePod is one more mode
    77,
    91, // a claim may shrink down to its capacity
  ],
};

/** 18 shows only part of each object; of the last pod it lists volumes where no object has them. */
const admissionSteps: readonly Step[] = admission.steps.map((step, index) =>
  index === 10 ? { ...step, response: { status: 201, body: { spec: step.response.body?.spec } } } : step,
);

const RECORDINGS: readonly [
  name: string,
  steps: readonly Step[],
  judged: number,
  Record<number, Expectation>,
][] = [
  ["02-create-defaults", defaults.steps, 19, {}],
  [
    "03-create-errors",
    createErrors.steps,
    18,
    {
      2: "elsewhere", // 409
      5: "elsewhere", // namespace of path and body
      6: "elsewhere", // resourceVersion on create
      7: { status: 201 },
      ...every(
        [8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 25, 26, 27, 28, 29, 30, 31, 32, 37],
        "elsewhere",
      ),
    },
  ],
  [
    "04-update-concurrency",
    updates.steps,
    12,
    {
      // Versions, uids, names and objects that are not there are the verbs' business.
      ...every([3, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 26, 28], "elsewhere"),
    },
  ],
  [
    "10-validation",
    validation.steps,
    110,
    {
      10: "elsewhere", // a string for a boolean
      61: "elsewhere", // no quantity
      119: "elsewhere", // no time
      22: { status: 422, causes: ["FieldValueInvalid parameters"] },
      23: { status: 422, causes: ["FieldValueInvalid provisioner"] },
      24: { status: 422, causes: ["FieldValueInvalid reclaimPolicy"] },
      35: OK, // fsGroupPolicy is mutable from 1.30
      37: OK, // so is podInfoOnMount
      38: OK,
      39: OK,
      48: OK, // allocatable is mutable from 1.35
      67: { status: 422, causes: ["FieldValueForbidden spec.accessModes"] },
    },
  ],
  ["18-admission", admissionSteps, 7, {}],
];

for (const [name, steps, judged, targets] of RECORDINGS) {
  describe(name, () => {
    const replay = new Replay();
    let count = 0;
    for (const [index, step] of steps.entries()) {
      const target = targets[index];
      if (target === "elsewhere") continue;
      const answer = replay.answer(step);
      if (step.setup === true) continue;
      count++;
      const isWorded = target === undefined && OTHER_WORDS[name]?.includes(index) !== true;
      if (step.response.status >= 400 && isWorded && !PRINTS_GO.test(messageOf(step.response.body))) {
        test(`${index}: the message is word for word the same`, () => {
          const recorded = messageOf(step.response.body).replace("must have at most", "may not be more than");
          expect(messageOf(answer?.body)).toBe(recorded);
        });
      }
      test(`${index}: ${step.request.method} ${step.note ?? step.request.path}`, () => {
        expect(summary(answer, step, { isPart: name === "18-admission" })).toEqual(expected(step, target));
      });
    }

    test("whatever was stored can be put again as it was shown, and stays what it was", () => {
      const again = replay.putAgain();

      expect(again.length).toBeGreaterThan(0);
      for (const { before, after } of again) expect(after).toEqual(before);
    });

    test("as many steps are judged as can be", () => {
      expect(count).toBe(judged);
    });
  });
}

/** Values and differences in the syntax of Go, which need not be copied. */
const PRINTS_GO = /\b(core|storage|v1)\.[A-Z]/;

function messageOf(body: unknown): string {
  return (body as { message?: string } | undefined)?.message ?? "";
}

/** Of a refusal: what clients branch on. Of a success: the whole object. */
function summary(answer: Answer | undefined, { response }: Step, part: { isPart: boolean }): unknown {
  if (answer === undefined) return "undecodable";
  if (answer.status >= 400) return { status: answer.status, ...refusal(answer.body) };
  return { status: answer.status, body: align(comparable(response.body), comparable(answer.body), part) };
}

function expected({ response }: Step, target: Expectation | undefined): unknown {
  if (target !== undefined && target !== "elsewhere") {
    const { causes } = target;
    return causes === undefined
      ? { status: target.status, body: expect.anything() }
      : { status: target.status, ...refusal(response.body), causes };
  }
  if (response.status >= 400) return { status: response.status, ...refusal(response.body) };
  return { status: response.status, body: comparable(response.body) };
}

function refusal(body: unknown) {
  const { reason, details } = body as {
    reason?: string;
    details?: { kind?: string; name?: string; group?: string; causes?: { reason: string; field: string }[] };
  };
  const causes = (details?.causes ?? []).map((cause) => `${cause.reason} ${cause.field}`);
  const { kind, name, group } = details ?? {};
  return { reason, details: { kind, name, group }, causes: [...new Set(causes)].sort() };
}

function every(indexes: readonly number[], expectation: Expectation): Record<number, Expectation> {
  return Object.fromEntries(indexes.map((index) => [index, expectation]));
}
