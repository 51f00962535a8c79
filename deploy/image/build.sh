#!/bin/sh
# Builds the contents of the image except for Node: the program, its license, and the licenses of the
# packages in it. Requires a checkout with installed packages (npm ci).
#
#   deploy/image/build.sh <folder>
set -eu

out=${1:?name the folder to write to}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
npm exec -- rolldown -c rolldown.config.ts --dir "$out"
rm "$out"/*.map "$out"/chunks/*.map
cp LICENSE "$out/"
# The user of the image only reads; the owner of the folder may build again or remove it.
chmod -R u=rwX,go=rX "$out"
chmod a+x "$out/pipe-scaling.mjs" "$out/kubectl-pipes.mjs" "$out/kubectl_complete-pipes"
