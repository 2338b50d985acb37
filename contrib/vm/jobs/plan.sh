# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Running tests by check.table. Sourced by jobs/check, which sets place, table_place (the place as the table has it),
# whole (not empty: what is brief runs, too) and failed.

plan_table=$VERVE_LAB/jobs/check.table
refusal_seconds=60	# patience with a test that is to be refused

# trim TEXT: sets trimmed.
trim()
{
	trimmed=${1#"${1%%[! ]*}"}
	trimmed=${trimmed%"${trimmed##*[! ]}"}
}

# plan TEST: sets verdict, how and why: what check.table says of the test in this place.
plan()
{
	local places tests verdict_ how_ why_ pattern

	verdict=run how='' why=''
	while IFS='|' read -r places tests verdict_ how_ why_; do
		[[ $places && $places != '#'* ]] || continue
		[[ " $places " == *" $table_place "* || $places == '* ' ]] || continue
		trim "$verdict_" && verdict_=$trimmed
		[[ $verdict_ == @(run|refused|left|brief|set) ]] || {
			echo "$plan_table: no verdict: $verdict_" >&2
			exit 2
		}
		[[ $verdict_ != set && ! ($whole && $verdict_ == brief) ]] || continue
		set -f
		for pattern in $tests; do
			# shellcheck disable=SC2053 # a pattern
			[[ $1 == $pattern ]] || continue
			set +f
			verdict=${verdict_/brief/left}
			trim "$how_" && how=$trimmed
			trim "$why_" && why=$trimmed
			[[ $how != - ]] || how=''
			return
		done
		set +f
	done <"$plan_table"
}

# place_set: exports what check.table sets for all tests of this place.
place_set()
{
	local places verdict how word

	while IFS='|' read -r places _ verdict how _; do
		[[ $verdict == ' set ' && " $places " == *" $table_place "* ]] || continue
		for word in $how; do
			export "${word?}"
		done
	done <"$plan_table"
}

# test_ok NAME SECONDS TENTHS: the last is processor time.
test_ok()
{
	local text

	tenths "$3"
	echo "ok $place/$1  ($2 s, CPU $text s)"
}

# test_refused NAME LOG STATUS: the result of a test that was to be refused.
test_refused()
{
	local name=$1 log=$2 status=$3

	if ((status == 0)); then
		echo "not ok $place/$name"
		echo "# it passed, although check.table says that it is refused: take that line out"
	elif ((status == 124 || status == 137)); then
		echo "not ok $place/$name"
		echo "# it hung, although check.table says that it is refused"
	elif grep -aqF -- "$how" "$log"; then
		echo "ok $place/$name # REFUSED $how"
		return
	else
		echo "not ok $place/$name"
		echo "# it failed without saying: $how"
	fi
	tail -n 30 "$log" | cut -c 1-200 | sed 's/^/# /'
	failed=1
}

# test_run NAME COMMAND...: as planned; a command that is to be refused may be a function.
test_run()
{
	local name=$1 log=$VERVE_OUT/${1//\//-}.log begin=$SECONDS status=0 verdict how why words=() word
	local cpu cpu_begin

	plan "$name"
	shift
	case $verdict in
	left)
		echo "# LEFT $place/$name $why"
		return
		;;
	refused)
		(export FI_LOG_LEVEL=info FI_LOG_PROV="$provider"; "$@") >"$log" 2>&1 || status=$?
		test_refused "$name" "$log" "$status"
		return
		;;
	esac
	read -ra words <<<"$how"
	cpu_used
	cpu_begin=$cpu
	(
		for word in "${words[@]}"; do
			if [[ $word == [A-Z]*=* ]]; then
				export "${word?}"
			else
				set -- "$@" "$word"
			fi
		done
		"$@"
	) >"$log" 2>&1 || status=$?
	if ((status == 0)); then
		cpu_used
		test_ok "$name" $((SECONDS - begin)) $((cpu - cpu_begin))
		return
	fi
	echo "not ok $place/$name  ($((SECONDS - begin)) s)"
	tail -n 30 "$log" | sed 's/^/# /'
	failed=1
}

# polite: makes the program of $rest (VARIABLE=VALUE... PROGRAM OPTION...) yield where it polls, unless an option of its own says
# how it waits: there are more polling processes than processors.
polite()
{
	[[ ! $rest =~ ^(([A-Z_0-9]+=[^ ]* )*[^ ]+)(.*)$ ]] || rest="${BASH_REMATCH[1]} -c yield${BASH_REMATCH[3]}"
}

# rows_plan SET LIST PATTERN: splits the rows that the pattern names into $VERVE_OUT/SETrows-run.test and -refused.test,
# the slash of a set as a dash.
rows_plan()
{
	local set=$1 list=$2 only=$3 base=$VERVE_OUT/${1/\//-}rows name kind seconds rest word settings options
	local verdict how why

	: >"$base-run.test"
	: >"$base-refused.test"
	while read -r name kind seconds rest; do
		[[ $name && $name != '#'* ]] || continue
		# shellcheck disable=SC2053 # a pattern
		[[ $name == $only ]] || continue
		plan "$set$name"
		case $verdict in
		left)
			echo "# LEFT $place/$set$name $why"
			;;
		refused)
			echo "$name $kind $refusal_seconds FI_LOG_LEVEL=info FI_LOG_PROV=$provider $rest" \
				>>"$base-refused.test"
			;;
		*)
			settings='' options=''
			for word in $how; do
				if [[ $word == [A-Z]*=* ]]; then
					settings+=" $word"
				else
					options+=" $word"
				fi
			done
			# Several runs of one machine must not meet in a file.
			rest=${rest//\/tmp\//$VERVE_OUT/}
			polite
			echo "$name $kind $seconds$settings $rest$options" >>"$base-run.test"
			;;
		esac
	done <"$list"
}

# rows_refuse SET LOGS COMMAND...: runs the command, fabtests/run over the rows that are to be refused, and judges each.
rows_refuse()
{
	local set=$1 logs=$2 line name status verdict how why

	shift 2
	while read -r line; do
		case $line in
		'ok '*) status=0 ;;
		'not ok '*) status=1 ;;
		'# it was stopped after '*) status=124 ;;
		*) continue ;;
		esac
		((status == 124)) || { name=${line#not } && name=${name#ok } && name=${name%% *}; }
		echo "$name $status"
	done < <("$@" 2>&1) | awk '{ if (!($1 in s)) order[++n] = $1; s[$1] = $2 }
		END { for (i = 1; i <= n; i++) print order[i], s[order[i]] }' >"$logs.results"
	while read -r name status; do
		plan "$set$name"
		cat "$logs/$name".{server,client} >"$logs/$name.both" 2>/dev/null
		test_refused "$set$name" "$logs/$name.both" "$status"
	done <"$logs.results"
}
