# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The lab's cache: Debian's stock kernel, extracted and never installed, an initrd that reaches
# the host's files over 9p, and whether KVM boots that kernel here. Sourced by `run`; needs die()
# and note().

vm_cache=${VERVE_VM_CACHE:-/var/cache/verve-vm}

# Name of the kernel release to boot: what linux-image-amd64 depends on, else the newest one in
# the cache. Where apt keeps no cache of its own it reads all of its lists, for two seconds, so that its
# answer is kept until they change.
kernel_newest()
{
	local kept=$vm_cache/newest lists=/var/lib/apt/lists release='' new when

	# The answer has the time of the lists that it is from.
	if [[ -f $kept && ! $kept -nt $lists && ! $kept -ot $lists ]]; then
		release=$(<"$kept")
	else
		when=$(stat -c %y "$lists" 2>/dev/null)
		release=$(apt-cache depends linux-image-amd64 2>/dev/null |
			sed -n 's/.*Depends: linux-image-\([0-9].*\)/\1/p' | head -n 1)
		if [[ $release && $when ]]; then
			new=$(mktemp "$vm_cache/new.XXXXXX")
			echo "$release" >"$new"
			touch -d "$when" "$new"
			mv "$new" "$kept" 2>/dev/null || true # another run takes new.* away
		fi
	fi
	[[ $release ]] ||
		release=$(cd "$vm_cache" && ls -d [0-9]*/ 2>/dev/null | sort -V | tail -n 1)
	printf '%s\n' "${release%/}"
}

# kernel_download RELEASE DIR: extracts the kernel package into DIR.
kernel_download()
{
	local release=$1 dir=$2

	note "fetching Debian's kernel $release (about 70 MB, once)"
	(cd "$dir" && apt-get -qq -o APT::Sandbox::User=root download "linux-image-$release") || {
		rm -f "$vm_cache/newest"
		die "cannot download linux-image-$release: is the network up? is the list of" \
			"packages recent (apt-get update)?"
	}
	dpkg -x "$dir"/linux-image-*.deb "$dir"
	rm -rf "$dir"/linux-image-*.deb "$dir/usr/share"
	[[ -d $dir/lib/modules ]] || ln -s usr/lib "$dir/lib"
	depmod -b "$dir" "$release"
}

# number FILE OFFSET BYTES: the unsigned integer there.
number()
{
	od -An -t "u$3" -j "$(($2))" -N "$3" "$1" | tr -d ' '
}

# kernel_unpack BZIMAGE FILE: the ELF file in the image, which QEMU starts as it is (PVH): an emulated processor takes
# five seconds to unpack it. Where it lies, Linux' Documentation/x86/boot.rst says: behind the sectors of setup_sects (0x1f1),
# payload_offset (0x248) further, payload_length (0x24c) bytes, of which the last four are its length unpacked. False: this
# kernel cannot be started so.
kernel_unpack()
{
	local image=$1 file=$2 begin length

	grep -q '^CONFIG_PVH=y' "${image/vmlinuz/config}" || return
	begin=$((($(number "$image" 0x1f1 1) + 1) * 512 + $(number "$image" 0x248 4)))
	length=$(($(number "$image" 0x24c 4) - 4))
	{ tail -c +$((begin + 1)) "$image" || true; } | head -c "$length" | xz -dc >"$file" &&
		[[ $(number "$file" 0 4) == $((0x464c457f)) ]]
}

# initrd_make KERNEL_DIR RELEASE FILE: busybox, guest/initramfs and the modules of guest/modules, with the names of those
# that the kernel has built in.
initrd_make()
{
	local dir=$1 release=$2 file=$3 tree=$3.tree words module modules=()
	local into=$tree/lib/modules/$release

	mkdir -p "$tree/bin" "$into"
	cp "$(command -v busybox)" "$tree/bin/"
	cp "$vm_lab/guest/modules" "$tree/"
	install -m 755 "$vm_lab/guest/initramfs" "$tree/init"
	while read -ra words; do
		[[ ${words[0]} == \#* ]] || modules+=("${words[@]:1}")
	done <"$vm_lab/guest/modules"
	for module in "${modules[@]}"; do
		if modprobe -d "$dir" -S "$release" --show-depends "${module%\?}" 2>/dev/null; then
			continue
		fi
		[[ $module == *\? ]] || die "kernel $release has no module $module, the lab cannot boot it"
		sed -i "s/ $module//" "$tree/modules"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$tree.list"
	while read -r module; do
		case $module in
		*.xz) xz -dc "$module" >"$into/$(basename "$module" .xz)" ;;
		*) cp "$module" "$into/" ;;
		esac
	done <"$tree.list"
	sed -i '/^#/!s/?//g' "$tree/modules"
	cp "$dir/lib/modules/$release"/modules.{builtin*,order} "$into/"
	depmod -b "$tree" "$release" || die "cannot list the modules of kernel $release (depmod)"
	# Not compressed: to undo that takes an emulated processor 0.2 s.
	(cd "$tree" && find . | cpio -o -H newc --quiet) >"$file"
	rm -rf "$tree" "$tree.list"
}

# kernel_prune RELEASE: removes other releases that no run holds a lock on.
kernel_prune()
{
	local dir

	for dir in "$vm_cache"/[0-9]*; do
		[[ $dir == "$vm_cache/$1" ]] || flock -n "$dir" rm -rf "$dir" || true
	done
}

# kernel_get: sets kernel_release, kernel_dir, kernel_image and kernel_initrd, making what the cache lacks. Each
# part is built aside and renamed, so that an interruption leaves nothing half made; holds a
# shared lock on the kernel's folder.
kernel_get()
{
	local lock new

	kernel_release=$(kernel_newest)
	[[ $kernel_release ]] ||
		die "apt knows no linux-image-amd64 and $vm_cache has no kernel: run apt-get update"
	kernel_dir=$vm_cache/$kernel_release
	kernel_initrd=$kernel_dir/initrd-$(cat "$vm_lab"/guest/{initramfs,modules} "$vm_lab/lib/kernel.sh" | sha256sum | head -c 16)

	exec {lock}>"$vm_cache/lock"
	flock "$lock"
	rm -rf "$vm_cache"/new.*
	if [[ ! -d $kernel_dir ]]; then
		new=$(mktemp -d "$vm_cache/new.XXXXXX")
		chmod 755 "$new"
		kernel_download "$kernel_release" "$new"
		mv "$new" "$kernel_dir"
		kernel_prune "$kernel_release"
	fi
	if [[ ! -f $kernel_initrd ]]; then
		new=$(mktemp "$vm_cache/new.XXXXXX")
		initrd_make "$kernel_dir" "$kernel_release" "$new"
		mv "$new" "$kernel_initrd"
		find "$kernel_dir" -maxdepth 1 -name 'initrd-*' -mtime +0 -delete
	fi
	kernel_image=$kernel_dir/boot/vmlinux
	if [[ ! -f $kernel_image ]]; then
		new=$(mktemp "$vm_cache/new.XXXXXX")
		if kernel_unpack "$kernel_dir/boot/vmlinuz-$kernel_release" "$new"; then
			mv "$new" "$kernel_image"
		else
			note "cannot unpack the kernel's image: the guest does that, and boots later"
			rm -f "$new"
			kernel_image=$kernel_dir/boot/vmlinuz-$kernel_release
		fi
	fi
	accel_probe
	exec {lock}>&-
	exec {kernel_lock}<"$kernel_dir"
	flock -s "$kernel_lock"
}

# kvm_boot: boots the kernel as far as the initrd, which prints verve-probe-ok.
kvm_boot()
{
	setpriv --pdeathsig KILL timeout -k 1 20 setpriv --pdeathsig KILL \
		qemu-system-x86_64 -accel kvm -cpu host -m 512 \
		-nodefaults -display none -no-reboot -serial stdio \
		-kernel "$kernel_image" -initrd "$kernel_initrd" \
		-append "console=ttyS0 quiet panic=-1 verve_probe=1" </dev/null
}

# accel_probe: sets vm_accel, QEMU's -accel and -cpu options, and vm_append, what the kernel should know of that. A
# /dev/kvm may exist and still not boot a stock kernel, so trying it decides; the verdict holds until the host restarts.
accel_probe()
{
	local verdict=$kernel_dir/kvm.$(</proc/sys/kernel/random/boot_id)

	if [[ ! -f $verdict ]]; then
		rm -f "$kernel_dir"/{accel,kvm}.*
		# The shell, too, has something to say when QEMU aborts.
		if [[ -w /dev/kvm ]] && kvm_boot 2>/dev/null | grep -q verve-probe-ok; then
			echo yes >"$verdict.new"
		else
			echo no >"$verdict.new"
		fi
		mv "$verdict.new" "$verdict"
	fi
	if [[ $(<"$verdict") == yes ]]; then
		vm_accel=(-accel kvm -cpu host) vm_append=""
		return
	fi
	# A processor that says that it copies bytes fast (erms) is made to copy each by itself: eight at a time otherwise.
	vm_accel=(-accel tcg,thread=multi -cpu max,-erms)
	# All emulated processors have the same time stamp, and to read another clock leaves the translated code.
	vm_append=" tsc=reliable"
	# Virtio devices have interrupts of their own kind (MSI): to look in ACPI's tables for a line takes 0.2 s for each.
	vm_append+=" acpi=noirq"
	# guest/init starts the second processor; to rewrite the kernel's code for one and back takes half a second.
	vm_append+=" maxcpus=1 noreplace-smp"
}
