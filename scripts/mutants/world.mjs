// What of the simulated cluster guards a promise beside the product.

/** Not all drivers have it. */
export const DRIVER_LOCK_OFF = {
  about: "the simulated driver's lock of a volume that a call is under way for",
  file: "src/sim/sockets.ts",
  from: 'if (key !== "" && busy.has(key))',
  to: 'if (key === "no volume" && busy.has(key))',
};
