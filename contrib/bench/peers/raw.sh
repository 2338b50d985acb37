# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Verbs without anything above them, measured by perftest. Sourced by ../rounds; ../lib.sh says what the functions of a
# peer do.

# raw_commands PEER TEST SIZE
raw_commands()
{
	local size=$3 options=() program

	case $2 in
	latency) program=ib_send_lat ;;
	bandwidth) program=ib_send_bw ;;
	write) program=ib_write_bw ;;
	read) program=ib_read_bw ;;
	rate) program=ib_send_bw size=8 options=(-t "$3") ;;
	fetch-add) program=ib_atomic_lat options=(-A FETCH_AND_ADD) ;;
	*) return 1 ;;
	esac
	[[ $program == ib_atomic_lat ]] || options+=(-s "$size")
	# As verve does with messages so small.
	[[ $program != ib_send_* || $size -gt $BENCH_INLINE ]] || options+=(-I "$BENCH_INLINE")
	[[ $program != *_bw ]] || options+=(-N --report_gbits)
	[[ $2 == rate || $program != ib_[sw]*_bw ]] || options+=(-t 64)
	options+=(-F -n "$(iterations "$size")" -p "$BENCH_PORT")
	server=("$program" -d "$VERVE_DEV1" "${options[@]}")
	client=("$program" -d "$VERVE_DEV0" "${options[@]}" "$VERVE_ADDR1")
	listens=$BENCH_PORT
}

# raw_rows PEER TEST SIZE
raw_rows()
{
	awk -v test="$2" -v size="$3" -v OFS=, '
	/^ *#bytes/ { data = NR + 1 }
	NR != data { next }
	test == "latency" || test == "fetch-add" { print "raw", test, size, $5, "us"; next }
	test == "rate" { print "raw", test, size, $5, "million/s"; next }
	{ print "raw", test, size, $4 * 125, "MB/s" }'
}
