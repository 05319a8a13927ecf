#!/bin/sh
# Builds the web page into web/dist, from where the next build of hart takes it. Without Node.js nothing is built, and
# hart says at its address how to have the page.
set -eu
cd "$(dirname "$0")/../web"

if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
    echo "skipped: the web page (Node.js 20 or newer is not here; the API works without it)"
    exit 0
fi
# The dependencies, unless those of this very lock file are there.
if ! cmp -s package-lock.json node_modules/.hart-lock; then
    if ! npm ci --no-audit --no-fund --loglevel=error; then
        echo "skipped: the web page (its dependencies could not be fetched; the API works without it)"
        exit 0
    fi
    cp package-lock.json node_modules/.hart-lock
fi
npm run --silent build
