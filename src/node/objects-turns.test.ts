import { expect, test } from "vitest";
import { createTurns } from "./objects-turns.ts";

function givenTurns(max: number) {
  const turns = createTurns<string>({ max });
  const order: string[] = [];
  const leaves = new Map<string, () => void>();
  const stop = new AbortController();
  const enter = (who: string, urgent = false, signal = stop.signal) =>
    turns.enter(who, { urgent, signal }).then((leave) => {
      order.push(who);
      leaves.set(who, leave);
    });
  return { turns, order, enter, leave: (who: string) => leaves.get(who)?.() };
}

const idle = () => new Promise<void>((resolve) => setImmediate(resolve));

test("as many as may ask at a time do, and the next when one has left", async () => {
  const { enter, leave, order } = givenTurns(2);
  for (const who of ["a", "b", "c", "d"]) void enter(who);
  await idle();
  expect(order).toEqual(["a", "b"]);

  leave("b");
  leave("b");
  await idle();

  expect(order).toEqual(["a", "b", "c"]);
});

test("what is urgent goes before everything else that waits, and so does what becomes urgent", async () => {
  const { turns, enter, leave, order } = givenTurns(1);
  for (const who of ["first", "old-1", "old-2", "old-3"]) void enter(who);
  void enter("new", true);
  turns.promote("old-3");
  turns.promote("nobody");

  for (const who of ["first", "new", "old-3", "old-1"]) {
    await idle();
    leave(who);
  }
  await idle();

  expect(order).toEqual(["first", "new", "old-3", "old-1", "old-2"]);
});

test("whoever gives up leaves the line and takes nobody's place", async () => {
  const { enter, leave, order } = givenTurns(1);
  const gone = new AbortController();
  void enter("first");
  const leaving = enter("leaving", true, gone.signal);
  void enter("last");

  gone.abort(new Error("nobody needs it any more"));
  await expect(leaving).rejects.toThrow("nobody needs it");
  leave("first");
  await idle();

  expect(order).toEqual(["first", "last"]);
});
