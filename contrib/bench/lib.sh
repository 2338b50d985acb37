# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# One measurement: a server at the second device, a client at the first one, and what the client said as rows. Sourced by
# rounds, which has the lab's environment (../vm/README.md) and jobs/lib.sh.
#
# A file of peers/ has two functions, whose arguments are the peer, the test and the size:
#   FILE_commands sets server, client and, if a client that comes too early fails, listens, the port to wait for.
#   Without a server the client measures alone. False: the peer has no such test, or not of this size.
#   FILE_rows reads the client's output and prints rows as "peer,test,size,value,unit"; none is a failure.

BENCH_PORT=18600	# another one for each measurement: on another host a server may outlive its client
readonly BENCH_INLINE=220	# bytes: verve asks the device for 256, its header among them

# peer_file PEER: the first word of its functions.
peer_file()
{
	case $1 in
	uct | ucp) echo ucx ;;
	raw) echo raw ;;
	*) echo libfabric ;;
	esac
}

# sizes_of TEST: what is measured: bytes, windows, kinds of matching, processes.
sizes_of()
{
	case $1 in
	latency | bandwidth | write | read) echo "${BENCH_SIZES//,/ }" ;;
	rate) echo 1 4 16 64 256 ;;
	fetch-add) echo 8 ;;
	matching) echo posted unexpected ;;
	connections) echo "${BENCH_PROCESSES//,/ }" ;;
	registration) echo 16777216 ;;	# up to
	esac
}

# iterations SIZE: so many operations of that size.
iterations()
{
	local count=$((BENCH_BYTES / $1))

	((count < BENCH_MOST)) || count=$BENCH_MOST
	((count > 20)) || count=20
	echo "$count"
}

# pinned HALF COMMAND...: prints the words of the command, which runs on the core of that half (0: the client) and ends in time.
pinned()
{
	local core=${BENCH_CORES[$1]-}

	shift
	printf '%s\0' ${core:+taskset -c "$core"} timeout -k 2 "$BENCH_SECONDS" "$@"
}

# wait_listening PORT: until the server has come so far; false if it ended.
wait_listening()
{
	until at_second ss -ltnH "sport = :$1" | grep -q .; do
		kill -0 "$server_pid" 2>/dev/null || return
		sleep 0.02
	done
}

# measure_pair LOG: runs server and client; the client's output is in LOG.client, the server's in LOG.server.
measure_pair()
{
	local log=$1 words status=0 server_pid=''

	if ((${#server[@]})); then
		mapfile -d '' -t words < <(pinned 1 "${server[@]}")
		at_second "${words[@]}" </dev/null >"$log.server" 2>&1 &
		server_pid=$!
		[[ ! $listens ]] || wait_listening "$listens" || { wait "$server_pid" || status=$?; return 1; }
	fi
	mapfile -d '' -t words < <(pinned 0 "${client[@]}")
	at_first "${words[@]}" </dev/null >"$log.client" 2>&1 || status=$?
	[[ $server_pid ]] || return "$status"
	((status == 0)) || kill "$server_pid" 2>/dev/null || true
	wait "$server_pid" || { ((status)) || status=1; }
	return "$status"
}

# reason LOG STATUS: one line of what went wrong, without commas.
reason()
{
	local text

	text=$(cat "$1.client" "$1.server" 2>/dev/null | grep -iE 'error|fail|cannot|could|no ' | head -n 1)
	[[ $2 != 124 && $2 != 137 ]] || text="not done in $BENCH_SECONDS s"
	# Without the time and the process that UCX names first.
	sed -E 's/^\[[^]]*\] \[[^]]*\] *//' <<<"${text:-ended with status $2}" | tr -s ',| \n' ';/  ' | cut -c 1-160 | sed 's/ $//'
}

# measure PEER TEST SIZE LOG: prints the rows; of a failure one with the value "failed".
measure()
{
	local peer=$1 test=$2 size=$3 log=$4 file rows='' status=0 listens='' server=() client=()

	file=$(peer_file "$peer")
	"${file}_commands" "$peer" "$test" "$size" || return 0
	[[ $test != connections ]] || local BENCH_CORES=()
	rm -f "$log".{client,server}
	measure_pair "$log" || status=$?
	((status)) || rows=$("${file}_rows" "$peer" "$test" "$size" <"$log.client")
	if [[ $rows ]]; then
		echo "$rows"
	else
		echo "$peer,$test,$size,failed,$(reason "$log" "$status")"
	fi
}
