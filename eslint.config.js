import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "**/fixtures/", "src/csi/gen/"] },
  js.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: "error",
      "no-console": "error",
      // AbortSignal.any holds its sources weakly: a timeout that only such a signal knows is collected, and never fires
      // (Node 20). `withDeadline` of base/clock.ts holds its timer, and runs on simulated time too.
      "no-restricted-properties": [
        "error",
        { object: "AbortSignal", property: "timeout", message: "Use withDeadline of base/clock.ts." },
      ],
      // Numbers belong in messages: `after 15 s`.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: true },
      ],
      // An async function without await still promises that it may become slow.
      "@typescript-eslint/require-await": "off",
      // `() => void work()` reads better than a block for one call.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      // A generic that appears once still names the caller's type: client.get<Pod>().
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      // `while (true)` with a return inside is the plainest form of a loop that lives until aborted.
      "@typescript-eslint/no-unnecessary-condition": [
        "error",
        { allowConstantLoopConditions: "only-allowed-literals" },
      ],
    },
  },
  {
    files: ["**/*.test.ts", "test/**/*.ts"],
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
    },
  },
  {
    files: ["scripts/**/*.mjs", "bin/*", "*.js"],
    languageOptions: { globals: { process: "readonly", console: "readonly", URL: "readonly" } },
  },
);
