# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The Debian packages that contrib's commands need, and their installation. Sourced.

# One line each: group, package, what it is for.
packages_list()
{
	cat <<-EOF
	build autoconf              makes configure
	build automake              makes Makefile.in
	build pkg-config            finds the libraries
	build make                  builds
	build gcc                   C compiler
	build libc6-dev             C library headers
	build libfabric-dev         libfabric headers and library
	build libibverbs-dev        libibverbs headers and library
	build libnl-3-dev           netlink, for verve_stat
	build libatomic-ops-dev     atomic operations, lock-free queues
	build libsodium-dev         authentication of handshakes, random numbers
	build uthash-dev            hash tables
	build systemtap-sdt-dev     places for tracers (USDT)
	build pandoc                makes the man pages
	check clang                 the second C compiler
	check libclang-rt-dev       sanitizer runtime of clang
	check libcriterion-dev      unit tests
	check libopenmpi-dev        builds the MPI test programs
	check python3-mpi4py        MPI from Python
	check valgrind              memory checks and instruction counts
	guest qemu-system-x86       boots the lab's guests
	guest busybox-static        first program of a guest
	guest cpio                  packs the guests' initrd
	guest xz-utils              unpacks the modules of a newer kernel
	guest kmod                  finds the kernel modules of a guest
	guest dropbear-bin          ssh between guests, started only there
	lab   iproute2              network and rdma commands
	lab   procps                sysctl and pgrep
	lab   rdma-core             RDMA configuration
	lab   ibverbs-providers     driver of rxe in user space
	lab   ibverbs-utils         ibv_devinfo and ibv_rc_pingpong
	lab   perftest              raw verbs latency and bandwidth
	lab   libfabric-bin         fi_info and fi_pingpong
	mpi   openmpi-bin           Open MPI's mpirun
	mpi   netpipe-openmpi       NetPIPE
	mpi   hpcc                  HPC Challenge
	deb   build-essential       what each package may build with
	deb   debhelper             builds the Debian packages
	deb   dpkg-dev              builds the Debian packages
	deb   lintian               checks them
	system mmdebstrap           makes the root of another release
	emulation qemu-user-static  runs programs of other processors
	emulation binfmt-support    tells the kernel so
	bench ucx-utils             ucx_perftest
	bench gnuplot-nox           plots
	bench iproute2              ss, by which a client waits for its server
	EOF
}

# packages_install GROUP...: installs what is missing of these groups; false, after a message, if
# that fails.
packages_install()
{
	local group package missing=()

	while read -r group package _; do
		[[ " $* " == *" $group "* ]] || continue
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep ' installed$' >/dev/null ||
			missing+=("$package")
	done < <(packages_list)
	if ((${#missing[@]} == 0)); then
		echo "all packages are installed"
		return
	fi
	command -v apt-get >/dev/null || {
		echo "these Debian packages are missing, and so is apt-get: ${missing[*]}"
		return 1
	}
	echo "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update || {
		echo "apt-get update failed: is the network up, are the sources in /etc/apt right?"
		return 1
	}
	apt-get -q install -y --no-install-recommends "${missing[@]}" || {
		echo "apt-get could not install: ${missing[*]}"
		return 1
	}
}
