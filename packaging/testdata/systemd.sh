#!/usr/bin/env bash
# Boots systemd in a copy of this system, and has it run the packaged service: testdata/service.sh says what is tried there.
# TestSystemd runs it as root:
#
#   systemd.sh FIRST SECOND WORK VERSION
#
# with two debs, an empty folder, and the version of the second. What is written goes to memory. The copy has processes, a
# network, a cgroup and a /dev of its own; the settings of the kernel are read-only, and of the services only the journal is
# started. Exit codes: 0 for success, 77 if this system does not allow it, 1 otherwise.
set -euo pipefail
skip() {
	echo "$*" >&2
	exit 77
}

if [ -z "${inside-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$groups" ] || skip "no cgroups of version 2"
	group=$groups/chert-packaging-$$
	mkdir "$group" || skip "no cgroup can be made"
	code=0
	(
		echo $BASHPID >"$group/cgroup.procs" || exit 77
		inside=$here exec timeout --signal=KILL 120 unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash "$0" "$@"
	) || code=$?
	# Until the kernel has ended the last process. systemd has made further groups in it.
	for _ in $(seq 100); do
		find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
		sleep 0.1
	done
	[ -s "$3/log" ] || skip "systemd does not start in a copy of this system (code $code)"
	cat "$3/log"
	[ "$(tail -n 1 "$3/log")" = PASSED ]
	exit
fi

first=$1 second=$2 work=$3 version=$4
for dir in /etc /usr /var; do
	[ "$(stat -c %d "$dir")" = "$(stat -c %d /)" ] || skip "$dir is on another file system than /"
done
touch "$work/log"
mkdir "$work/copy"
mount -t tmpfs tmpfs "$work/copy" || skip "no tmpfs"
mkdir "$work"/copy/{upper,work,root}
root=$work/copy/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/copy/upper,workdir=$work/copy/work" "$root" || skip "no overlay of /"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys" || skip "no sysfs"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || skip "no cgroups"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root"/dev/{pts,shm,mqueue,hugepages}
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ip link set lo up

# Of the units of the system none is started but the journal.
rm -rf "$root"/{lib,etc}/systemd/system/*.wants "$root/usr/sbin/policy-rc.d"
mkdir "$root/lib/systemd/system/sysinit.target.wants"
ln -s ../systemd-journald.service "$root/lib/systemd/system/sysinit.target.wants/"
cp "$first" "$root/var/tmp/first.deb"
cp "$second" "$root/var/tmp/second.deb"
cp "$inside/service.sh" "$root/var/tmp/"
touch "$root/var/tmp/log"
mount --bind "$work/log" "$root/var/tmp/log"
cat >"$root/etc/systemd/system/trial.service" <<-END
	[Unit]
	DefaultDependencies=no
	Requires=sysinit.target
	After=sysinit.target
	SuccessAction=exit-force
	FailureAction=exit-force
	[Service]
	Type=oneshot
	ExecStart=/bin/bash /var/tmp/service.sh $version
	StandardOutput=append:/var/tmp/log
	StandardError=append:/var/tmp/log
END
cd "$root"
mkdir old
mount --make-rprivate /
pivot_root . old
umount -l /old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=trial.service --log-target=journal --show-status=no
