import { expect, test } from "vitest";
import type { VolumeState } from "../world.ts";
import { createConfirmations } from "./confirm.ts";

function volume(name: string, driver = "d1"): VolumeState {
  return { name, plugin: { metricName: () => driver } } as unknown as VolumeState;
}

test("eight of a driver are made sure of at a time; one that is done wakes one that waits", () => {
  const woken: string[] = [];
  const confirmations = createConfirmations((name) => woken.push(name));
  for (let n = 0; n < 8; n++) expect(confirmations.claim(volume(`v${n}`), 0)).toBeUndefined();
  for (const name of ["late-1", "late-2"]) expect(confirmations.claim(volume(name), 0)).toBe(5_000);
  expect(confirmations.claim(volume("other", "d2"), 0)).toBeUndefined();
  expect(confirmations.claim(volume("v3"), 0), "its second step").toBeUndefined();

  confirmations.release(volume("v3").name);

  expect(woken).toEqual(["late-1"]);
  expect(confirmations.claim(volume("late-1"), 0)).toBeUndefined();
  expect(confirmations.claim(volume("late-2"), 0)).toBe(5_000);
});

test("one that is woken and needs no place any more passes its turn on", () => {
  const woken: string[] = [];
  const confirmations = createConfirmations((name) => woken.push(name));
  for (let n = 0; n < 10; n++) confirmations.claim(volume(`v${n}`), 0);

  confirmations.release(volume("v0").name);
  confirmations.release(volume("v8").name);

  expect(woken).toEqual(["v8", "v9"]);
});

test("calls that hang hold up no others for longer than five seconds", () => {
  const confirmations = createConfirmations(() => undefined);
  for (let n = 0; n < 8; n++) confirmations.claim(volume(`hung-${n}`), 0);
  expect(confirmations.claim(volume("late"), 4_999)).toBe(5_000);

  expect(confirmations.claim(volume("late"), 5_000)).toBeUndefined();
});
