import fc from "fast-check";

/** Generated cases are the same in every run, unless a seed asks for others: a red build must be red again. */
fc.configureGlobal({ seed: Number(process.env["MOORING_SEED"] ?? 1) });
