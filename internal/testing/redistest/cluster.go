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

// node starts a server that is to be in a cluster.
func node(t testing.TB) *Server {
	t.Helper()
	return Start(t, "--cluster-enabled", "yes", "--cluster-port", freeport.Port(t), "--cluster-node-timeout", "2000")
}

// Cluster starts a cluster of n servers without replicas.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	var all []*Server
	for i := range n {
		s := node(t)
		s.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		s.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/n), strconv.Itoa((i+1)*slots/n-1))
		all = append(all, s)
	}
	for _, s := range all[1:] {
		all[0].meet(s)
	}
	for _, s := range all {
		s.Await("cluster_state:ok", "CLUSTER", "INFO")
		s.Await(fmt.Sprintf("cluster_known_nodes:%d", n), "CLUSTER", "INFO")
		s.Await("cluster_slots_ok:16384", "CLUSTER", "INFO")
	}
	return all
}

// meet adds a server to a cluster.
func (s *Server) meet(other *Server) {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(other.Addr)
	s.Must("CLUSTER", "MEET", host, port, other.args[3])
}

// Replica adds a replica of one server of a cluster, which all of them know then.
func Replica(t testing.TB, all []*Server, of *Server) *Server {
	t.Helper()
	r := node(t)
	all[0].meet(r)
	id := of.Must("CLUSTER", "MYID")
	r.Await(id, "CLUSTER", "NODES")
	r.Await("cluster_slots_ok:16384", "CLUSTER", "INFO")
	r.Must("CLUSTER", "REPLICATE", id)
	r.Await("master_link_status:up", "INFO", "replication")
	own := r.Must("CLUSTER", "MYID")
	for _, s := range all {
		s.Await(own, "CLUSTER", "REPLICAS", id)
	}
	return r
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
