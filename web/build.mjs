// Builds the page into the Python package. The same sources give the same bytes.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/caudal/gateway/page");
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
};

rmSync(out, { recursive: true, force: true });
await build({
  ...common,
  entryPoints: { app: "src/app.tsx", digest: "src/digest.ts" },
  outdir: out,
  format: "esm",
  splitting: true,
  chunkNames: "part-[hash]",
});
await build({ ...common, entryPoints: ["src/style.css"], outfile: join(out, "style.css") });
const report = await build({
  ...common,
  entryPoints: ["src/report.tsx"],
  outdir: out,
  format: "iife",
  write: false,
});
const [script] = report.outputFiles.filter((one) => one.path.endsWith(".js"));
const style = readFileSync(join(out, "style.css"), "utf8");
const page = readFileSync(join(here, "src/report.html"), "utf8")
  .replace("/*style*/", () => style)
  .replace("/*script*/", () => script.text.replaceAll("</script", "<\\/script"));
writeFileSync(join(out, "report.html"), page);
for (const name of ["index.html", "icon.svg"])
  writeFileSync(join(out, name), readFileSync(join(here, "src", name)));
