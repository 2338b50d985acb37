# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The lab on the machine itself: its own RDMA devices, or two soft-RoCE devices that are taken
# down again at the end. Sourced by `run`.

# native_address FAMILY NETDEV: its first address that is not for its own link alone, if it has one.
native_address()
{
	ip "$1" -o addr show dev "$2" scope global |
		awk '{ sub("/.*", "", $4); print $4; exit }'
}

# native_devices: fills lab_dev, lab_netdev, lab_addr and lab_ipv6 with up to two active devices that
# have an IPv4 address; the one of IPv6 may be empty.
native_devices()
{
	local dir dev netdev addr

	lab_dev=() lab_netdev=() lab_addr=() lab_ipv6=()
	for dir in /sys/class/infiniband/*; do
		dev=${dir##*/}
		grep -qs ACTIVE "$dir/ports/1/state" || continue
		netdev=$(cat "$dir/ports/1/gid_attrs/ndevs/0" 2>/dev/null ||
			ls "$dir/device/net" 2>/dev/null | head -n 1)
		[[ $netdev ]] || continue
		addr=$(native_address -4 "$netdev")
		[[ $addr ]] || continue
		lab_dev+=("$dev") lab_netdev+=("$netdev") lab_addr+=("$addr")
		lab_ipv6+=("$(native_address -6 "$netdev")")
		((${#lab_dev[@]} < 2)) || break
	done
	((${#lab_dev[@]} > 0)) || return
	lab_dev[1]=${lab_dev[1]-${lab_dev[0]}}
	lab_netdev[1]=${lab_netdev[1]-${lab_netdev[0]}}
	lab_addr[1]=${lab_addr[1]-${lab_addr[0]}}
	lab_ipv6[1]=${lab_ipv6[1]-${lab_ipv6[0]}}
}

# native_run: sets guests_status.
native_run()
{
	[[ $opt_shape == devices ]] || die "--native has no $opt_shape shape: run it in the lab"
	if ! native_devices; then
		modprobe rdma_rxe 2>/dev/null ||
			die "no active RDMA device with an IPv4 address, and no rdma_rxe:" \
				"run without --native"
		[[ ! -e /sys/class/net/d0 && ! -e /sys/class/net/d1 ]] ||
			die "an interface d0 or d1 exists already; the soft-RoCE pair needs it"
		at_end "$vm_lab/devices" down
		"$vm_lab/devices" up || die "the soft-RoCE devices did not come up"
		native_devices || die "the soft-RoCE devices are not active"
	fi
	note "on this machine: ${lab_dev[*]} (${lab_addr[*]})"
	lab_hosts=("$(hostname)")
	echo "<5>verve-lab: the job starts ($$)" >/dev/kmsg || true
	ulimit -l unlimited
	(
		. <(environment_print)
		export VERVE_HOST_INDEX=0
		exec setpriv --pdeathsig TERM timeout -k 5 "$opt_timeout" "${command[@]}" 2>&1
	) && guests_status=0 || guests_status=$?
	((guests_status != status_timeout)) ||
		note "time limit: the command did not end in $opt_timeout s"
	dmesg >"$run_dir/console0" 2>/dev/null || true
	kernel_log_check "this machine" "$run_dir/console0" || guests_status=$status_kernel
}
