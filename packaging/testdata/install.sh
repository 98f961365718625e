#!/usr/bin/env bash
# Installs, runs, upgrades and removes packages of chert in a copy of this system: what is written goes to memory, and the
# machine stays as it is. TestInstall runs it as root; it makes namespaces of mounts, processes and the network:
#
#   install.sh deb|rpm FIRST SECOND WORK VERSION
#
# FIRST is installed, SECOND has the version VERSION, which is higher; WORK is an empty folder. Exit codes: 0 for success,
# 77 if this system does not allow it, 1 otherwise. There is no systemd in the copy: the commands of the unit are run as its user.
set -euo pipefail
if [ -z "${inside-}" ]; then
	inside=1 exec unshare --mount --pid --net --fork --kill-child bash "$0" "$@"
fi
format=$1 first=$2 second=$3 work=$4 version=$5
fail() {
	echo "FAILED: $*" >&2
	exit 1
}
skip() {
	echo "$*" >&2
	exit 77
}

for dir in /etc /usr /var; do
	[ "$(stat -c %d "$dir")" = "$(stat -c %d /)" ] || skip "$dir is on another file system than /"
done
mount -t tmpfs tmpfs "$work" || skip "no tmpfs"
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root" || skip "no overlay of /"
root=$work/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run" # without /run/systemd, so that nothing talks to this system's
mount -t tmpfs tmpfs "$root/tmp"
ip link set lo up
cp "$first" "$root/tmp/first" && cp "$second" "$root/tmp/second"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
inside() { chroot "$root" "$@"; }

case $format in
deb)
	put() { inside dpkg --no-triggers --install "$1"; }
	remove() { inside dpkg --no-triggers --remove chert; }
	;;
rpm)
	mkdir "$root/tmp/rpmdb"
	# Debian's rpm knows of no packages that it would depend on.
	put() { inside rpm --dbpath /tmp/rpmdb --upgrade --nodeps "$1"; }
	remove() { inside rpm --dbpath /tmp/rpmdb --erase --nodeps chert; }
	;;
esac

# unit KEY prints the values of a key of the unit.
unit() { sed -n "s/^$1=//p" "$root"/lib/systemd/system/chert.service; }
# What runs a command as the service does: as its user, with one capability.
as=(chroot "$root" setpriv --reuid=chert --regid=chert --clear-groups --no-new-privs --inh-caps=-all,+net_bind_service
	--ambient-caps=-all,+net_bind_service --bounding-set=-all,+net_bind_service env -i STATE_DIRECTORY=/var/lib/chert)
server=
start() {
	local command
	while read -r command; do "${as[@]}" $command; done < <(unit ExecStartPre)
	"${as[@]}" $(unit ExecStart) >"$work/stdout" 2>"$work/stderr" &
	server=$!
	local tries
	for tries in $(seq 200); do
		if inside chert health "$1" >/dev/null 2>&1; then return; fi
		kill -0 $server || break
		sleep 0.1
	done
	cat "$work/stdout" "$work/stderr" >&2
	fail "the server does not respond at $1"
}
stop() {
	kill -TERM $server
	local code=0
	wait $server || code=$?
	[ $code -eq 0 ] || fail "the server ended with $code: $(cat "$work/stderr")"
}

echo "=== $format: install"
put /tmp/first
mkdir "$root/run/chert" # systemd makes it
inside chown chert:chert /run/chert
[ "$(unit User)" = chert ] || fail "the user of the unit is $(unit User)"
for dir in /var/lib/chert /var/log/chert; do
	[ "$(inside stat -c %U:%G:%a $dir)" = chert:chert:750 ] || fail "$dir belongs to $(inside stat -c %U:%G:%a $dir)"
done
inside chert version
[ -s "$root/usr/share/man/man1/chert-serve.1.gz" ] || fail "no manual"
inside bash -n /usr/share/bash-completion/completions/chert
if inside sh -c 'command -v logrotate' >/dev/null; then
	inside logrotate --debug /etc/logrotate.d/chert 2>&1 | (! grep -i error) || fail "the file of logrotate is wrong"
fi
if [ "$format" = deb ]; then
	[ -L "$root/etc/systemd/system/multi-user.target.wants/chert.service" ] || fail "the service is not enabled"
fi
start 8080
inside curl -sS http://127.0.0.1:8080/ | grep -q 'chert is running' || fail "the page is not served"
stop

echo "=== $format: a configuration of the administrator's"
cat >"$root/etc/chert/chert.toml" <<-END
	listen = ["127.0.0.1:80"]
	[log]
	file = "/var/log/chert/access.log"
	format = "combined"
	[[site]]
	hosts = ["*"]
	root = "/usr/share/chert/www"
END
cp "$root/etc/chert/chert.toml" "$work/chert.toml"
start 80
"${as[@]}" touch /var/lib/chert/key.pem

echo "=== $format: upgrade, while the first version serves"
put /tmp/second
inside curl -sS http://127.0.0.1/ | grep -q 'chert is running' || fail "the running server stopped serving"
cmp "$root/etc/chert/chert.toml" "$work/chert.toml" || fail "the configuration was changed"
[ -e "$root/var/lib/chert/key.pem" ] || fail "the state was removed"
stop
inside chert version | grep -qF "chert $version " || fail "the version is not $version: $(inside chert version)"
start 80
stop
grep -q '"GET / HTTP/1.1" 200' "$root/var/log/chert/access.log" || fail "nothing is logged"

echo "=== $format: remove"
remove
for file in /usr/bin/chert /usr/share/chert /usr/share/man/man1/chert.1.gz; do
	[ ! -e "$root$file" ] || fail "$file was left"
done
for file in /var/lib/chert/key.pem /var/log/chert/access.log; do
	[ -e "$root$file" ] || fail "$file was removed"
done
if [ "$format" = rpm ]; then
	cmp "$root/etc/chert/chert.toml.rpmsave" "$work/chert.toml" || fail "the configuration was lost"
	exit 0
fi
cmp "$root/etc/chert/chert.toml" "$work/chert.toml" || fail "the configuration was lost"

echo "=== $format: purge"
inside dpkg --no-triggers --purge chert
# What is different from this system now is what the package has left.
left=$(cd "$work/upper" && find . -mindepth 1 | sed 's|^\.||' | while read -r path; do
	case $path in
	/var/lib/dpkg/* | /var/log/dpkg.log | /var/cache/* | /etc/*- | /var/lib/systemd/deb-systemd-helper-enabled | /etc/.pwd.lock) continue ;;
	esac
	if [ -d "$work/upper$path" ] && [ -d "$path" ]; then continue; fi
	if [ -f "$work/upper$path" ] && cmp -s "$work/upper$path" "$path"; then continue; fi
	echo "$path"
done)
[ -z "$left" ] || fail "left behind: $left"
