# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Long commands as named steps with a log each, for the commands of contrib and the jobs of the
# lab. Sourced; the caller sets steps_logs, the folder of the logs.

# step NAME COMMAND...: runs it, output in the log, and prints one line with the result and the
# time; on failure the end of the log too, and false. Where a function is the command it returns
# its failures itself: set -e does not hold in it.
step()
{
	local name=$1 log=$steps_logs/${1//[^A-Za-z0-9]/-}.log begin=$SECONDS status=0

	shift
	printf '%-64s' "$name"
	("$@") </dev/null >"$log" 2>&1 || status=$?
	if ((status == 0)); then
		printf 'ok       %4d s\n' $((SECONDS - begin))
		return
	fi
	printf 'FAILED   %4d s  (status %d)\n' $((SECONDS - begin)) "$status"
	echo "--- the end of $log:"
	tail -n 40 "$log"
	echo "---"
	return 1
}
