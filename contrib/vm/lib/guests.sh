# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Starting the guests of one run and following them to the end. Sourced by `run`. What guests need
# is in $run_dir; each process started here ends with the runner, however that ends.

# Seconds. A guest that dies while it boots is noticed at once, so this is for one that hangs. Several guests boot
# at once, perhaps without KVM and beside other work: what takes 15 s alone may take minutes.
readonly guests_boot_limit=600
guests_pid=()

# start COMMAND...: in the background, killed when the runner dies. Redirections of the call apply.
start()
{
	exec setpriv --pdeathsig KILL "$@"
}

# guests_describe: what guest/initramfs, guest/init and the job read. The job's environment is the caller's, then
# the lab's.
guests_describe()
{
	local size

	ln -s "$vm_lab/guest/init" "$run_dir/init"
	(set -o posix; export -p) >"$run_dir/environment"
	{
		environment_print
		printf 'lab_run=%q lab_modules=%q lab_interactive=%q\n' \
			"$run_dir" "$kernel_dir/lib/modules/$kernel_release" "$opt_interactive"
		size=$(stty size 2>/dev/null) || size="24 80"
		printf 'lab_rows=%s lab_columns=%s\n' "${size% *}" "${size#* }"
	} >"$run_dir/guest.env"
	{
		printf 'cd %q || exit\n' "$PWD"
		[[ ${#command[@]} == 0 ]] || printf '%q ' "${command[@]}"
	} >"$run_dir/job"
	mkfifo "$run_dir/events"
	exec {guests_events}<>"$run_dir/events"
}

# ssh_keys: one key serves all guests as host key, identity and known host.
ssh_keys()
{
	local dir=$run_dir/ssh key i

	mkdir "$dir"
	dropbearkey -t ed25519 -f "$dir/id_dropbear" >/dev/null 2>&1
	key=$(dropbearkey -y -f "$dir/id_dropbear" | sed -n 's/^\(ssh-[^ ]* [^ ]*\).*/\1/p')
	echo "$key" >"$dir/authorized_keys"
	for ((i = 0; i < opt_hosts; i++)); do
		echo "verve$i $key"
	done >"$dir/known_hosts"
}

# The network between the guests is made of unix datagram sockets, which take no port of the host:
# two guests send to each other, more send to a hub, which is a QEMU without a machine.
hub_start()
{
	local i hub=(qemu-system-x86_64 -machine none -nodefaults -display none)

	for ((i = 0; i < opt_hosts; i++)); do
		hub+=(-netdev "$(netdev "d$i" "hub$i" "net$i")"
			-netdev "hubport,id=h$i,hubid=0,netdev=d$i")
	done
	start "${hub[@]}" </dev/null >"$run_dir/hub.log" 2>&1 &
}

# netdev ID LOCAL REMOTE
netdev()
{
	printf 'dgram,id=%s,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s' \
		"$1" "$run_dir/$2" "$run_dir/$3"
}

# output_copy INDEX: guest 0's output is the run's, the others' carries their name. The last to
# say "gone".
output_copy()
{
	if [[ $1 == 0 ]]; then cat; else sed -u "s/^/verve$1| /"; fi
	echo "$1 gone" >&"$guests_events"
}

# control_follow INDEX: passes on what guest/init tells.
control_follow()
{
	local line

	while read -r line; do
		echo "$1 $line" >&"$guests_events"
	done
}

# guest_start INDEX
guest_start()
{
	local i=$1 qemu share cpus=1 peer=hub$1
	local append="console=ttyS0 quiet oops=panic panic=-1 mitigations=off net.ifnames=0"

	# On a busy machine a guest may get no time while its kernel counts ticks, which then takes its timer for broken.
	append+=" no_timer_check"
	# Clearing all memory twice, a security module and testing ciphers show nothing here.
	append+=" init_on_alloc=0 apparmor=0 cryptomgr.notests initcall_blacklist=crypto_kdf108_init"
	# QEMU translates a program anew for each address at which it is started: at the same one it starts in half of the time.
	append+=" norandmaps$vm_append"
	((opt_hosts > 2)) || peer=net$((1 - i))
	share=local,security_model=none,multidevs=remap
	[[ $opt_shape != devices ]] || cpus=2
	qemu=(qemu-system-x86_64 "${vm_accel[@]}" -m "$opt_mem" -smp "$cpus"
		-nodefaults -display none -no-reboot
		-kernel "$kernel_image" -initrd "$kernel_initrd"
		-append "$append verve_shape=$opt_shape verve_run=$run_dir verve_host=$i"
		-virtfs "$share,path=/,mount_tag=host,readonly=on"
		-virtfs "$share,path=${VERVE_OUT//,/,,},mount_tag=out"
		-device virtio-serial-pci
		-chardev file,id=output,path=/dev/fd/5
		-device virtserialport,chardev=output,name=output
		-chardev file,id=control,path=/dev/fd/6
		-device virtserialport,chardev=control,name=control
		-serial chardev:console)
	if [[ $opt_interactive && $i == 0 ]]; then
		qemu+=(-chardev "stdio,id=console,mux=on,signal=off,logfile=$run_dir/console$i"
			-mon chardev=console)
	else
		qemu+=(-chardev "file,id=console,path=$run_dir/console$i")
	fi
	[[ $opt_shape != hosts ]] || qemu+=(
		-netdev "$(netdev net "net$i" "$peer")"
		-device "virtio-net-pci,netdev=net,mac=52:54:00:00:00:0$i,host_mtu=9000")
	start "${qemu[@]}" <&"$stdin" 2>"$run_dir/qemu$i.log" \
		5> >(output_copy "$i") 6> >(control_follow "$i") &
	guests_pid[i]=$!
}

# guest_lost INDEX WHY: ends the run; shows what its kernel complained about, or else the end of
# what is known.
guest_lost()
{
	kernel_log_check "verve$1" "$run_dir/console$1" || exit "$status_kernel"
	tail -n 25 "$run_dir/qemu$1.log" "$run_dir/console$1" >&2
	die "verve$1 $2 (its console is above)"
}

# guests_follow: from boot to the end of every guest's job; sets guests_status, guest 0's unless
# that is 0 and another's is not. A guest that is gone without a status counts as 0 unless it is
# guest 0: killing a host is a fair test.
guests_follow()
{
	local -A up=() status=()
	local deadline=$((SECONDS + guests_boot_limit)) left host event detail

	while ((${#status[@]} < opt_hosts)); do
		left=$((deadline - SECONDS))
		if ((left <= 0)) || ! read -r -t "$left" -u "$guests_events" host event detail; then
			((SECONDS >= deadline)) || continue
			for ((host = 0; host < opt_hosts; host++)); do
				[[ ${up[$host]-} ]] ||
					guest_lost "$host" "did not come up in $guests_boot_limit s"
			done
			note "time limit: the command did not end in $opt_timeout s"
			guests_status=$status_timeout
			return
		fi
		case $event in
		up)
			up[$host]=1
			deadline=$((SECONDS + opt_timeout))
			;;
		done) status[$host]=$detail ;;
		fail) guest_lost "$host" "failed: $detail" ;;
		gone)
			[[ ${up[$host]-} && $host != 0 ]] || guest_lost "$host" "is gone"
			note "verve$host is gone"
			status[$host]=0
			;;
		esac
	done
	guests_status=${status[0]}
	for host in "${!status[@]}"; do
		((guests_status)) || guests_status=${status[$host]}
	done
}

# guests_stop: ends all guests and waits until their output is out.
guests_stop()
{
	local gone=0 host event detail

	kill "${guests_pid[@]}" 2>/dev/null || true
	wait "${guests_pid[@]}" 2>/dev/null || true
	while ((gone < opt_hosts)) && read -r -t 5 -u "$guests_events" host event detail; do
		[[ $event != gone ]] || gone=$((gone + 1))
	done
}

# guests_run: sets guests_status.
guests_run()
{
	local i

	guests_describe
	if [[ $opt_shape == hosts ]]; then
		ssh_keys
		((opt_hosts == 2)) || hub_start
	fi
	for ((i = 0; i < opt_hosts; i++)); do
		guest_start "$i"
	done
	guests_follow
	guests_stop
	for ((i = 0; i < opt_hosts; i++)); do
		kernel_log_check "verve$i" "$run_dir/console$i" || guests_status=$status_kernel
	done
}
