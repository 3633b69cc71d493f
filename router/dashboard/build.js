// build.js: src/ -> built/, three small files that CMake puts into the program.
//
//   node build.js            builds
//   node build.js --check    says where built/ is not what src/ builds to
//
// built/ is kept in git, so that building serin needs no node: Debian 12's npm alone is some 400 packages, and its node is too old for half of what
// is current. tests/checks/dashboard holds it against the sources. It is minified without source map, and the same bytes on every machine: esbuild's
// version is pinned, and nothing of a path or a date goes in.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const options = {
  entryPoints: [
    { in: "src/app.tsx", out: "dashboard" },
    { in: "src/style.css", out: "dashboard" },
    { in: "src/index.html", out: "index" },
  ],
  loader: { ".html": "copy" },
  outdir: "built",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome111", "firefox113", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  write: false,
};

let stale = 0;
for (const { path, contents } of (await build(options)).outputFiles) {
  if (!process.argv.includes("--check")) {
    await writeFile(path, contents);
  } else if (!(await readFile(path).catch(() => Buffer.alloc(0))).equals(contents)) {
    console.log(`${path.slice(path.indexOf("router/"))}: is not what router/dashboard/src builds to; run: npm run build`);
    ++stale;
  }
}
process.exitCode = stale === 0 ? 0 : 1;
