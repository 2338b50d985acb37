# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# What jobs of all shapes share: choosing a provider, starting something at the second device,
# MPI jobs. Sourced by jobs; uses the lab's environment (../README.md) and VERVE_BUILD, the build
# folder of the provider.

# provider_use NAME
provider_use()
{
	unset FI_PROVIDER_PATH FI_UNIVERSE_SIZE FI_VERBS_DEVICE_NAME
	export FI_PROVIDER=$1
	case $1 in
	verve)
		export FI_PROVIDER_PATH=$VERVE_BUILD/lib
		# Processes start sooner: though it is not chosen, libfabric's provider verbs asks the kernel for each of 1024 GIDs
		# of each device. In the process shape there is no kernel to ask.
		[[ $VERVE_SHAPE == process ]] || export FI_VERBS_DEVICE_NAME=none
		;;
	*ofi_rxm) export FI_UNIVERSE_SIZE=32 ;;	# more needs a completion queue larger than rxe has
	esac
}

# at_second COMMAND...: in the place of the second device: on the second host, or here and told to
# use that device.
at_second()
{
	local name settings=

	if [[ $VERVE_SHAPE != hosts ]]; then
		FI_VERVE_IFACE=$VERVE_DEV1@$VERVE_NETDEV1 FI_VERBS_IFACE=$VERVE_NETDEV1 "$@"
		return
	fi
	for name in "${!FI_@}"; do
		settings+=$(printf 'export %s=%q; ' "$name" "${!name}")
	done
	$VERVE_LAUNCH "${VERVE_HOSTS##* }" "$settings$(printf '%q ' "$@")"
}

# at_first COMMAND...
at_first()
{
	FI_VERVE_IFACE=$VERVE_DEV0@$VERVE_NETDEV0 FI_VERBS_IFACE=$VERVE_NETDEV0 "$@"
}

# mpi RANKS COMMAND...: even ranks use the first device, odd ones the second, each on its host
# where there are two. Messages go over mtl/ofi.
mpi()
{
	local components=(--mca pml cm --mca mtl ofi)

	mpi_start "$@"
}

# mpi_rma RANKS COMMAND...: the same, but messages and one-sided communication go over btl/ofi.
mpi_rma()
{
	local components=(--mca pml ob1 --mca btl self,ofi --mca btl_ofi_mode 2
		--mca btl_ofi_provider_include "$FI_PROVIDER" --mca osc rdma --mca osc_rdma_btls ofi)

	mpi_start "$@"
}

# mpi_start RANKS COMMAND...: with the caller's components of Open MPI.
mpi_start()
{
	local ranks=$1 name session='' status=0 options=(--allow-run-as-root "${components[@]}")

	shift
	for name in "${!FI_@}"; do
		options+=(-x "$name")
	done
	((ranks == 2)) || options+=(--oversubscribe --mca mpi_yield_when_idle 1)
	if [[ $VERVE_SHAPE == hosts ]]; then
		options+=(--host "${VERVE_HOSTS// /:$ranks,}:$ranks" --map-by node
			--mca plm_rsh_agent "$VERVE_LAUNCH")
	else
		# Jobs of several profiles run at a time, and Open MPI makes and removes one folder for all jobs of a user.
		session=$(mktemp -d) || return
		options+=(--mca orte_tmpdir_base "$session")
		set -- "$VERVE_LAB/jobs/mpi-rank" "$@"
	fi
	mpirun -np "$ranks" "${options[@]}" "$@" || status=$?
	rm -rf "$session"
	return "$status"
}

# pingpong ADDRESS OPTION...: fi_pingpong between the two devices, the second of which has the address.
pingpong()
{
	local address=$1 server

	shift
	at_second fi_pingpong -p "$FI_PROVIDER" -e rdm -d "$VERVE_DEV1" "$@" &
	server=$!
	until at_second ss -ltnH 'sport = :47592' | grep -q .; do
		kill -0 "$server" || return
		sleep 0.2
	done
	at_first fi_pingpong -p "$FI_PROVIDER" -e rdm -d "$VERVE_DEV0" "$@" "$address" || {
		kill "$server"
		return 1
	}
	wait "$server"
}

# wire NETEM-ARGUMENT...: how what the interfaces in $netdevs send fares from now on; without arguments well. (The
# discipline is never taken away: meanwhile nothing could be sent.)
# shellcheck disable=SC2154 # netdevs: the job's
wire()
{
	local dev

	for dev in "${netdevs[@]}"; do
		tc qdisc replace dev "$dev" root netem limit 100000 "$@" || return
	done
}

# packets: how many the first device sent and the second received so far.
packets()
{
	local sys=/sys/class/infiniband
	local dir0=$sys/$VERVE_DEV0/ports/1 dir1=$sys/$VERVE_DEV1/ports/1

	if [[ $VERVE_SHAPE == process ]]; then
		shmv-ctl "$VERVE_DEV0" counters | sed -n 's/^sent //p'
		shmv-ctl "$VERVE_DEV1" counters | sed -n 's/^received //p'
		return
	fi
	cat "$dir0/hw_counters/sent_pkts" 2>/dev/null ||
		cat "$dir0/counters/port_xmit_packets"
	at_second cat "$dir1/hw_counters/rcvd_pkts" 2>/dev/null ||
		at_second cat "$dir1/counters/port_rcv_packets"
}

# crossing NAME COMMAND...: runs it and notes the packets between the devices in
# $VERVE_OUT/packets; false if so few went that the traffic took another way.
crossing()
{
	local name=$1 before after sent received

	shift
	mapfile -t before < <(packets)
	"$@" || return
	mapfile -t after < <(packets)
	sent=$((after[0] - before[0])) received=$((after[1] - before[1]))
	echo "$name $sent $received" >>"$VERVE_OUT/packets"
	((sent >= 1000 && received >= 1000)) || {
		echo "the traffic did not cross the devices: $sent packets sent, $received received"
		return 1
	}
}
