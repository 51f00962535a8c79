#!/usr/bin/env bash
# Checks that the first line of each commit has at most 72 characters, so that lists show it whole. Commits that are older
# than this file are not checked. The argument is the last commit that is not checked; without it, the one that added this
# file.
set -euo pipefail
most=72
cd "$(git rev-parse --show-toplevel)"
base=${1:-$(git log --diff-filter=A --format=%H -- .github/commit-subjects.sh | tail -n 1)}
[ -n "$base" ] || exit 0
long=$(git log --no-merges --format='%h %s' "$base..HEAD" | awk -v most="$most" 'length(substr($0, index($0, " ") + 1)) > most')
[ -z "$long" ] && exit 0
printf 'The first line of these commits has more than %s characters:\n%s\nShorten it: git rebase --interactive\n' "$most" "$long" >&2
exit 1
