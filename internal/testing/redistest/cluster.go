package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chert-http/chert/internal/testing/freeport"
)

// slots of a cluster.
const slots = 16384

// Cluster starts a cluster of n servers without replicas.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	var all []*Server
	for i := range n {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-port", freeport.Port(t), "--cluster-node-timeout", "2000")
		s.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		s.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/n), strconv.Itoa((i+1)*slots/n-1))
		all = append(all, s)
	}
	for _, s := range all[1:] {
		host, port, _ := net.SplitHostPort(s.Addr)
		all[0].Must("CLUSTER", "MEET", host, port, s.args[3])
	}
	for _, s := range all {
		s.Await("cluster_state:ok", "CLUSTER", "INFO")
		s.Await(fmt.Sprintf("cluster_known_nodes:%d", n), "CLUSTER", "INFO")
		s.Await("cluster_slots_ok:16384", "CLUSTER", "INFO")
	}
	return all
}

// Sentinel starts a sentinel that watches master, under the name "main". Its
// vote alone declares a master down.
func Sentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	Need(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	own := freeport.Port(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\n"+
		"sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n", own, dir, host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, args: []string{file, "--sentinel"}, Addr: net.JoinHostPort("127.0.0.1", own)}
	if err := s.begin(); err != nil {
		t.Fatalf("sentinel does not start: %v\n%s", err, s.out.String())
	}
	t.Cleanup(s.Kill)
	return s
}
