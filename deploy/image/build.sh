#!/bin/sh
# Builds the contents of the image except for Node: the program in one file, its license, and the licenses of the
# packages in it. Requires a checkout with installed packages (npm ci).
#
#   deploy/image/build.sh <folder>
set -eu

out=${1:?name the folder to write to}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
# The extension .mjs makes it an ES module without a package.json.
npm exec -- rolldown -c rolldown.config.ts --file "$out/pipe-scaling.mjs"
rm "$out/pipe-scaling.mjs.map"
cp LICENSE "$out/"
chmod -R a=rX "$out"
