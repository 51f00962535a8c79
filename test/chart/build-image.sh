#!/usr/bin/env bash
# Builds deploy/Dockerfile without a container engine, for container-image.ts, and unpacks the image to <folder>/bundle. The
# base images are replaced by stand-ins, made of Node, npm and a few programs of this machine. Requires root, buildah and
# umoci.
#
#   test/chart/build-image.sh <folder> <node> <version>
set -euo pipefail

out=${1:?name the folder to write to}
node=${2:?name the program node}
version=${3:?give the version}
cd "$(dirname "$0")/../.."

# Prints the libraries of programs.
libraries() {
  ldd "$@" | sed --quiet --regexp-extended 's/.*\s(\/\S+) \(0x.*/\1/p' | sort --unique
}
# Copies files to their paths below a folder.
copy() {
  local root=$1 file
  shift
  for file in "$@"; do install -D "$file" "$root$file"; done
}

for_build=$out/for-build
mkdir -p "$for_build"/{etc/ssl,root,tmp,usr/local/lib/node_modules}
mapfile -t programs < <(for name in chmod cp dirname env mkdir rm sh; do command -v "$name"; done)
mapfile -t needed < <(libraries "${programs[@]}" "$node" node_modules/@rolldown/binding-*/*.node)
copy "$for_build" /bin/sh /usr/bin/env "${programs[@]}" "${needed[@]}"
install -D "$node" "$for_build/usr/local/bin/node"
# Not from the folder of global packages, which follows the prefix of npm and the node of the PATH.
npm_folder=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
cp -r "$npm_folder" "$for_build/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$for_build/usr/local/bin/npm"
echo 'root:x:0:0:root:/root:/bin/sh' >"$for_build/etc/passwd"
# npm must reach the same registry as on this machine.
cp -rL /etc/ssl/certs "$for_build/etc/ssl/"
install -D "${NODE_EXTRA_CA_CERTS:-/dev/null}" "$for_build/etc/extra-ca.crt"
settings="ENV NODE_EXTRA_CA_CERTS=/etc/extra-ca.crt npm_config_registry=$(npm config get registry)"

to_run=$out/to-run
mapfile -t needed < <(libraries "$node")
copy "$to_run" "${needed[@]}"
install -D "$node" "$to_run/nodejs/bin/node"

export CONTAINERS_REGISTRIES_CONF=$out/registries.conf
echo 'unqualified-search-registries = ["docker.io"]' >"$CONTAINERS_REGISTRIES_CONF"
storage=(--root "$out/storage" --runroot "$out/state" --storage-driver)
# Faster, and not possible where the folder is on an overlay itself.
driver=overlay
buildah "${storage[@]}" "$driver" info >/dev/null 2>&1 || driver=vfs
build() {
  buildah "${storage[@]}" "$driver" "$@"
}
stand_in() {
  printf 'FROM scratch\nCOPY . /\n%s\n' "$3" >"$out/Dockerfile"
  build bud --quiet --file "$out/Dockerfile" --tag "$1" "$2"
}
mapfile -t bases < <(sed --quiet --regexp-extended 's/^FROM (--platform=\S+ )?(\S+).*/\2/p' deploy/Dockerfile)
stand_in localhost/for-build "$for_build" "$settings"
stand_in localhost/to-run "$to_run" ''
build bud --isolation chroot --pull-never \
  --build-context "${bases[0]}=container-image://localhost/for-build" \
  --build-context "${bases[1]}=container-image://localhost/to-run" --file deploy/Dockerfile --ignorefile deploy/Dockerfile.dockerignore \
  --build-arg "VERSION=$version" --tag built .
build push --quiet built "oci:$out/oci:built"
umoci unpack --image "$out/oci:built" "$out/bundle"
