#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Makes ./configure. Needs autoconf, automake and pkg-config.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing: apt-get install autoconf automake pkg-config" >&2
		exit 1
	}
done
mkdir -p config
exec autoreconf --install --force --warnings=all,no-obsolete
