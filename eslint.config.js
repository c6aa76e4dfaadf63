// The linter of the dashboard (api/dashboard/web), the second opinion (api/dashboard/opinion) and the tag (api/tag): ESLint's recommended rules.
import js from "@eslint/js";

const names = (...all) => Object.fromEntries(all.map((name) => [name, "readonly"]));

export default [
  js.configs.recommended,
  {
    languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
  },
  {
    files: ["api/dashboard/web/*.{js,jsx}"],
    languageOptions: {
      globals: names(
        "AbortController", "Blob", "CustomEvent", "FormData", "ResizeObserver", "URL", "URLSearchParams",
        "addEventListener", "clearTimeout", "dispatchEvent", "document", "fetch", "getComputedStyle", "history", "location",
        "matchMedia", "navigator", "print", "XMLSerializer", "removeEventListener", "scrollTo", "sessionStorage", "localStorage", "setTimeout",
      ),
    },
  },
  {
    files: ["api/dashboard/opinion/opinion/opinion.js"],
    languageOptions: {
      sourceType: "script",
      globals: names(
        "Blob", "CompressionStream", "DecompressionStream", "Go", "TextDecoder", "TextEncoder", "URL", "WebAssembly", "atob",
        "btoa", "document", "location", "navigator", "performance", "print", "setTimeout",
      ),
    },
  },
  {
    files: ["api/tag/tag.js"],
    languageOptions: {
      globals: names(
        "URLSearchParams", "addEventListener", "document", "fetch", "location", "navigator", "performance", "setTimeout",
        "window",
      ),
    },
  },
];
