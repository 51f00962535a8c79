#!/bin/sh
# Makes what an image holds beside Node: the whole program in one file, and its license. Runs in a checkout whose
# packages are installed (npm ci).
#
#   deploy/image/build.sh <folder>
set -eu

out=${1:?name the folder to write to}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
# By its name Node knows that it is a module, without a package.json.
npm exec -- rolldown -c rolldown.config.ts --file "$out/pipe-scaling.mjs"
rm "$out/pipe-scaling.mjs.map"
cp LICENSE "$out/"
chmod -R a=rX "$out"
