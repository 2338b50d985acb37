# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Providers of libfabric, measured by the programs of fabtests: verve, another build of verve (beside), verbs;ofi_rxm (rxm),
# tcp;ofi_rxm (tcp) and shm. Sourced by ../rounds; ../lib.sh says what the functions of a peer do.

# libfabric_provider PEER
libfabric_provider()
{
	case $1 in
	verve) provider_use verve ;;
	beside) VERVE_BUILD=$BENCH_BESIDE provider_use verve ;;
	rxm) provider_use 'verbs;ofi_rxm' ;;
	tcp) provider_use 'tcp;ofi_rxm' ;;
	shm) provider_use shm ;;
	esac
}

# libfabric_registration PEER: mr_reg has ibv_reg_mr(3) in a column of its own, so it is there for raw, too.
libfabric_registration()
{
	local build=$VERVE_BUILD

	case $1 in
	verve) ;;
	beside) build=$BENCH_BESIDE ;;
	*) return 1 ;;
	esac
	client=("$build/prov/verve/test/bench/mr_reg" "$BENCH_REGISTRATIONS")
}

# libfabric_commands PEER TEST SIZE
libfabric_commands()
{
	local size=$3 count window=64 program options

	libfabric_provider "$1"
	[[ $2 != rate ]] || window=$3 size=8
	case $2 in
	latency | bandwidth | write | read | rate | fetch-add) count=$(iterations "$size") ;;
	esac
	case $2 in
	latency)
		program=benchmarks/rdm_pingpong
		options=(-o tagged -S "$size" -I "$count" -w $((count / 10)))
		;;
	bandwidth | write | read | rate)
		program=benchmarks/rdm_bw
		# So many windows; the program makes a tenth of -I.
		options=(-S "$size" -W "$window" -I $((10 * count / window + 10)))
		case $2 in
		write) options+=(-o rma) ;;
		read) options+=(-o read) ;;
		*) options+=(-o tagged) ;;
		esac
		;;
	fetch-add)
		program=benchmarks/rdm_fetch_add
		options=(-I "$count" -w $((count / 10)))
		;;
	matching)
		program=benchmarks/rdm_match
		options=(-o "$3" -I "$BENCH_MATCHES")
		;;
	connections)
		[[ $1 != shm ]] || return 1
		program=functional/rdm_conns
		options=(-W $(($3 / 2)))
		;;
	registration)
		libfabric_registration "$1"
		return
		;;
	*) return 1 ;;
	esac
	program=$BENCH_FABTESTS/$program
	options+=("-E=$BENCH_PORT")
	server=("$program" -p "$FI_PROVIDER" -s "$VERVE_ADDR1" "${options[@]}")
	client=("$program" -p "$FI_PROVIDER" -s "$VERVE_ADDR0" "${options[@]}" "$VERVE_ADDR1")
}

# libfabric_rows PEER TEST SIZE
libfabric_rows()
{
	case $2 in
	latency) awk -v size="$3" -v OFS=, -v peer="$1" '$1 == size { print peer, "latency", size, $3, "us" }' ;;
	bandwidth | write | read)
		awk -v size="$3" -v OFS=, -v peer="$1" -v test="$2" '$1 == size { print peer, test, size, $5, "MB/s" }'
		;;
	# Messages of 8 bytes: MB/s by 8 are millions.
	rate) awk -v size="$3" -v OFS=, -v peer="$1" '$1 == 8 { print peer, "rate", size, $5 / 8, "million/s" }' ;;
	fetch-add) awk -v OFS=, -v peer="$1" '$1 == 8 { print peer, "fetch-add", 8, $3, "us" }' ;;
	matching)
		awk -v OFS=, -v peer="$1" '
		/^receives, pingpong .*\./ { print peer, "match-receives", $3, $5, "us" }
		/^receives, pingpong .*no more/ { print peer, "match-receives", 100000, "refused", "after " $3 " receives" }
		/^messages, take any .*\./ { print peer, "match-messages", $4, $6, "us" }
		/^messages, take any .*no more/ { print peer, "match-messages", 100000, "refused", "after " $4 " messages" }'
		;;
	connections)
		awk -v size="$3" -v OFS=, -v peer="$1" '
		/directed pairs:/ { print peer, "connect-time", size, $6 * 1000, "ms" }
		/^bytes a connection/ {
			print peer, "connect-memory", size, $11 / 1024, "KiB/connection"
		}' | tr -d ' '
		;;
	registration)
		awk -v OFS=, -v peer="$1" '$1 ~ /^[0-9]+$/ {
			if (peer == "verve")
				print "raw", "registration", $1, $2, "us"
			print peer, "registration", $1, $3, "us"
			print peer "-hit", "registration", $1, $4, "us"
			print peer "-miss", "registration", $1, $5, "us"
		}'
		;;
	esac
}
