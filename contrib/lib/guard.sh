# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Ends everything that a command started when the command itself ends, also by KILL. Sourced.

# guard SCRIPT ARGUMENT...: call it first. Runs the script once more in a session of its own, and
# in there returns; a watcher ends that session as soon as the process that the user started is
# gone.
guard()
{
	local user=${VERVE_GUARD-}

	if [[ ! $user ]]; then
		VERVE_GUARD=$$ setsid "$@" &
		wait $! && exit || exit $?
	fi
	unset VERVE_GUARD
	(
		trap '' TERM
		tail -s 0.2 --pid="$user" -f /dev/null
		kill -TERM -- "-$$"
		sleep 1
		kill -KILL -- "-$$"
	) </dev/null >/dev/null 2>&1 &
}
