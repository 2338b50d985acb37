# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The lab without a guest: processes of this machine over the device of shared memory (contrib/shmverbs).
# Sourced by `run`.

# process_run: sets guests_status.
process_run()
{
	local device=$vm_lab/../shmverbs/run

	[[ -e ${VERVE_BUILD:-}/contrib/shmverbs/lib/libibverbs.so.1 ]] ||
		die "no device in the build folder \$VERVE_BUILD: run \"make shmverbs\" there"
	VERVE_BUILD=$(realpath "$VERVE_BUILD")
	export VERVE_BUILD SHMV_FABRIC=${run_dir##*/} SHMV_PROFILE=$opt_profile
	unset SHMV_IPS
	at_end "$device" --down
	lab_dev=(shm0 shm1) lab_netdev=(shmn0 shmn1) lab_hosts=("$(hostname)")
	lab_addr=(10.9.0.1 10.9.0.2) lab_ipv6=(fd09::1 fd09::2)
	note "over shared memory, as $opt_profile: ${lab_dev[*]} (${lab_addr[*]})"
	stand_ins
	# For the same end, in the fabric's mount namespace: libfabric's provider verbs reads all of it, twice, in each process.
	"$device" mount --bind /dev/null /proc/kallsyms || note "/proc/kallsyms stays long: processes start later"
	ulimit -l unlimited 2>/dev/null || note "locked memory stays limited: $(ulimit -l) KiB"
	(
		. <(environment_print)
		export VERVE_HOST_INDEX=0
		exec setpriv --pdeathsig TERM timeout -k 5 "$opt_timeout" "$device" "${command[@]}" 2>&1
	) && guests_status=0 || guests_status=$?
	((guests_status != status_timeout)) ||
		note "time limit: the command did not end in $opt_timeout s"
}
