# What systemd.sh tries in the copy, where systemd runs: service.sh VERSION. The last line is PASSED.
set -euo pipefail
version=$1
export LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
fail() {
	systemctl status chert --no-pager || true
	journalctl -u chert --no-pager -o cat | tail -n 20 || true
	echo "FAILED: $*"
	exit 1
}
# healthy ARGUMENTS... waits until the service responds.
healthy() {
	for _ in $(seq 100); do
		if chert health "$@" >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	fail "$(chert health "$@" 2>&1)"
}
# logged waits until a request is in the log: it is logged after its response.
logged() {
	for _ in $(seq 100); do
		if [ -s /var/log/chert/access.log ]; then return; fi
		sleep 0.1
		chert health https://localhost/ --at 80 --insecure >/dev/null 2>&1 || true
	done
	fail "$(ls -l /var/log/chert)"
}
pid() { systemctl show -P MainPID chert; }
# replaced waits until $main is not the main process: the message that says so may be on its way.
replaced() {
	for _ in $(seq 100); do
		if [ "$(pid)" != "$main" ]; then return; fi
		sleep 0.1
	done
	fail "the old process goes on"
}

echo "=== install: the service is enabled and runs"
dpkg --no-triggers --install /var/tmp/first.deb
[ "$(systemctl is-enabled chert)" = enabled ] || fail "not enabled"
healthy
main=$(pid)
status=$(cat /proc/"$main"/status)
for want in 'CapEff:	0000000000000400' 'CapBnd:	0000000000000400' 'NoNewPrivs:	1' 'Seccomp:	2'; do
	grep -qx "$want" <<<"$status" || fail "the process has no $want: $status"
done
[ "$(ps -o user= -p "$main")" = chert ] || fail "it does not run as chert"

echo "=== upgrade: the new process dies while the old one drains, and the service comes back"
exec 3<>/dev/tcp/127.0.0.1/8080
printf 'GET / HTTP/1.1\r\n' >&3 # the old process waits for the rest
chert upgrade /run/chert/control
replaced
new=$(pid)
kill -KILL "$new"
[ -e /proc/"$main" ] || fail "the old process has ended already"
exec 3>&-
healthy
[ "$(pid)" != "$new" ] || fail "$new goes on"

echo "=== reload: the same process goes on, and a mistake changes nothing"
main=$(pid)
systemctl reload chert
echo 'listen = 1' >>/etc/chert/chert.toml
if systemctl reload chert 2>/dev/null; then fail "a file with a mistake was loaded"; fi
healthy
[ "$(pid)" = "$main" ] || fail "a reload started another process"

echo "=== a port below 1024, TLS, a log in a file, a socket of another group"
mkdir /etc/systemd/system/chert.service.d
printf '[Service]\nSupplementaryGroups=www-data\n' >/etc/systemd/system/chert.service.d/override.conf
systemctl daemon-reload
cat >/etc/chert/chert.toml <<-END
	listen = ["127.0.0.1:80", "unix:/run/chert/socket?mode=0660&group=www-data"]
	log = { file = "/var/log/chert/access.log", format = "combined" }
	[[site]]
	hosts = ["*"]
	root = "/usr/share/chert/www"
	tls_self = true
END
systemctl restart chert
healthy https://localhost/ --at 80 --insecure
healthy https://localhost/ --at unix:/run/chert/socket --insecure
[ "$(stat -c '%G %a' /run/chert/socket)" = 'www-data 660' ] || fail "$(ls -l /run/chert/socket)"
[ -s /var/lib/chert/self/ca.pem ] || fail "the keys are not in /var/lib/chert"

if command -v logrotate >/dev/null; then
	echo "=== rotation of the log"
	logged # an empty log is not rotated
	logrotate --force /etc/logrotate.d/chert
	[ -s /var/log/chert/access.log.1 ] || fail "$(ls -l /var/log/chert)"
	logged
fi

echo "=== upgrade: the new version takes over without a refused connection"
main=$(pid)
touch /var/tmp/asking
while [ -e /var/tmp/asking ]; do
	chert health https://localhost/ --at 80 --insecure >/dev/null 2>>/var/tmp/refused || true
done &
dpkg --no-triggers --install /var/tmp/second.deb
rm /var/tmp/asking
wait
[ ! -s /var/tmp/refused ] || fail "$(cat /var/tmp/refused)"
replaced
[ "$(readlink /proc/"$(pid)"/exe)" = /usr/bin/chert ] || fail "the main process is $(readlink /proc/"$(pid)"/exe)"
[ "$(chert version | cut -d ' ' -f 2)" = "$version" ] || fail "$(chert version)"

echo "=== upgrade: with a file that it does not accept the old process goes on"
main=$(pid)
cp /etc/chert/chert.toml /var/tmp/good.toml
echo 'listen = 1' >>/etc/chert/chert.toml
dpkg --no-triggers --install /var/tmp/second.deb 2>/var/tmp/said
grep -q 'the server goes on as before' /var/tmp/said || fail "it does not say so: $(cat /var/tmp/said)"
healthy https://localhost/ --at 80 --insecure
[ "$(pid)" = "$main" ] || fail "another process serves"
cp /var/tmp/good.toml /etc/chert/chert.toml

echo "=== upgrade: a service that is stopped stays so"
systemctl stop chert
[ "$(systemctl show -P Result chert)" = success ] || fail "it did not stop cleanly"
dpkg --no-triggers --install /var/tmp/second.deb
[ "$(systemctl is-active chert)" = inactive ] || fail "an upgrade started what was stopped"

echo "=== remove: it stops"
systemctl start chert
healthy https://localhost/ --at 80 --insecure
main=$(pid)
dpkg --no-triggers --remove chert
[ ! -e /proc/"$main" ] || fail "it goes on"
dpkg --no-triggers --purge chert
[ ! -e /var/lib/chert ] && [ ! -e /var/log/chert ] && [ ! -e /etc/chert ] || fail "a folder is left"
echo PASSED
