# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# UCX over verbs, measured by ucx_perftest: its protocols with tag matching (ucp), or only its transport (uct), which has
# no matching and no messages above 8 KiB. Sourced by ../rounds; ../lib.sh says what the functions of a peer do.

# ucx_verbs_files COMMAND...: UCX uses a device only if /dev/infiniband has its file. Those of shared memory have none: here
# they get one, in a /dev that this command alone sees. Nothing opens the files.
ucx_verbs_files()
{
	local dev=/run name

	mount -t tmpfs tmpfs "$dev"
	mkdir "$dev/shm" "$dev/infiniband"
	mount --rbind /dev/shm "$dev/shm"
	for name in null zero full random urandom; do
		touch "$dev/$name"
		mount --bind "/dev/$name" "$dev/$name"
	done
	for name in uverbs0 uverbs1; do
		touch "$dev/infiniband/$name"
		mount --bind /dev/null "$dev/infiniband/$name"
	done
	mount --rbind "$dev" /dev
	exec "$@"
}

# ucx_test PEER TEST: the name of the test in ucx_perftest.
ucx_test()
{
	case $1,$2 in
	uct,latency) echo am_lat ;;
	uct,bandwidth | uct,rate) echo am_bw ;;
	uct,write) echo put_bw ;;
	uct,read) echo get ;;
	uct,fetch-add) echo fadd ;;
	ucp,latency) echo tag_lat ;;
	ucp,bandwidth | ucp,rate) echo tag_bw ;;
	ucp,write) echo ucp_put_bw ;;
	ucp,read) echo ucp_get ;;
	ucp,fetch-add) echo ucp_fadd ;;
	*) return 1 ;;
	esac
}

# ucx_layout TEST SIZE: how the transport is given the bytes, as UCP would choose; false: it does not take so many.
ucx_layout()
{
	case $1 in
	latency | bandwidth | rate)
		(($2 <= 8192)) || return
		if (($2 <= 32)); then echo short; else echo bcopy; fi
		;;
	write)
		if (($2 <= 32)); then echo short; else echo zcopy; fi
		;;
	read) if (($2 <= 8192)); then echo bcopy; else echo zcopy; fi ;;
	fetch-add) echo short ;;
	esac
}

# ucx_commands PEER TEST SIZE
ucx_commands()
{
	local name size=$3 window=64 layout options=() wrap=()

	name=$(ucx_test "$1" "$2") || return
	[[ $2 != rate ]] || window=$3 size=8
	[[ $VERVE_SHAPE != process || -e /dev/infiniband ]] ||
		wrap=(unshare --mount --propagation private bash -ec
			"$(declare -f ucx_verbs_files); ucx_verbs_files \"\$@\"" ucx)
	if [[ $1 == uct ]]; then
		layout=$(ucx_layout "$2" "$size") || return
		options=(-x rc_verbs -d "$VERVE_DEV0:1" -D "$layout")
	fi
	[[ $2 != bandwidth && $2 != write && $2 != read && $2 != rate ]] || options+=(-O "$window")
	options+=(-t "$name" -s "$size" -n "$(iterations "$size")" -w $(($(iterations "$size") / 10)) -f -v)
	server=("${wrap[@]}" env UCX_TLS=rc UCX_NET_DEVICES="$VERVE_DEV1:1" ucx_perftest -p "$BENCH_PORT")
	client=("${wrap[@]}" env UCX_TLS=rc UCX_NET_DEVICES="$VERVE_DEV0:1" ucx_perftest -p "$BENCH_PORT" "${options[@]}"
		"$VERVE_ADDR1")
	listens=$BENCH_PORT
}

# ucx_rows PEER TEST SIZE. Columns: iterations, median latency, its averages, bandwidths in MiB/s, messages a second.
ucx_rows()
{
	awk -F, -v OFS=, -v peer="$1" -v test="$2" -v size="$3" '
	!/^ *[0-9]+,[0-9.]+,[0-9.,]+$/ { next }
	test == "latency" || test == "fetch-add" { print peer, test, size, $2, "us"; next }
	test == "rate" { print peer, test, size, $8 / 1e6, "million/s"; next }
	{ print peer, test, size, $8 * size / 1e6, "MB/s" }'
}
