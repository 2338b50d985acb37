# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Long commands as named steps with a log each, for the commands of contrib and the jobs of the
# lab. Sourced; step needs steps_logs, the folder of the logs.

# cpu_used: sets cpu, the processor time that this shell and all that it has waited for used so far, in tenths of a second.
cpu_used()
{
	local stat

	read -r stat <"/proc/$BASHPID/stat"
	# Behind the name come the fields of proc(5) from the third on; 14 to 17 are times, in ticks of 10 ms.
	read -ra stat <<<"${stat##*) }"
	cpu=$(((stat[11] + stat[12] + stat[13] + stat[14]) / 10))
}

# tenths N: sets text, so many tenths of a second in seconds.
tenths()
{
	text=$(($1 / 10)).$(($1 % 10))
}

# step NAME COMMAND...: runs it, output in the log, and prints one line with the result, the time and the processor time;
# on failure the end of the log too, and false. Where a function is the command it returns its failures itself: set -e does
# not hold in it.
step()
{
	local name=$1 log=$steps_logs/${1//[^A-Za-z0-9]/-}.log begin=$SECONDS status=0 cpu cpu_begin text

	shift
	printf '%-64s' "$name"
	cpu_used
	cpu_begin=$cpu
	("$@") </dev/null >"$log" 2>&1 || status=$?
	cpu_used
	tenths $((cpu - cpu_begin))
	if ((status == 0)); then
		printf 'ok       %4d s, CPU %6s s\n' $((SECONDS - begin)) "$text"
		return
	fi
	printf 'FAILED   %4d s, CPU %6s s  (status %d)\n' $((SECONDS - begin)) "$text" "$status"
	echo "--- the end of $log:"
	tail -n 40 "$log"
	echo "---"
	return 1
}
