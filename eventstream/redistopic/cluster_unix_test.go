//go:build unix

package redistopic

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/topictest"
)

// The primary of a Cluster's shard is lost with an event that its replica has not got: clients
// that have received it get the event of a gap. No server has told the process where the keys are now.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	// "{0}" has slot 13907, that of the last third.
	const key, slot, failing = "chert:topic:{0}news", "13907", 2
	if got := nodes[0].Must("CLUSTER", "KEYSLOT", key); got != slot {
		t.Fatalf("the slot is %s", got)
	}
	second := redistest.Replica(t, nodes, nodes[failing])
	s := &topictest.Setup{Open: func(t *testing.T, queue int) topictest.Store {
		return open(t, "redis+cluster://"+nodes[0].Addr, &Options{Queue: queue, History: history, Shards: 1})
	}}
	a, b := s.Start(t, 0), s.Start(t, 1000)
	ca := a.Client("news", "")
	ca.Announced()
	a.Publish("news", "kept")
	ca.Wants("kept")
	kept := ca.Last
	second.Await(key, "KEYS", "*") // which it answers, unlike commands with keys; "kept" is the first event
	// The replica is stopped and its connection cut, so what follows cannot be on its way to it.
	second.Pause()
	nodes[failing].Must("CLIENT", "KILL", "TYPE", "replica")
	a.Publish("news", "lost")
	ca.Wants("lost")
	nodes[failing].Kill()
	second.Resume()
	if _, err := publish(b, "waits"); err != nil { // until the replica has taken over
		t.Error(err)
	}
	ca.Wants("(gap)", "waits")
	a.Client("news", kept).Wants("lost", "(gap)", "waits")
	s.Start(t, 0).Client("news", kept).Wants("waits")
	if gaps := a.Store.(*Store).Stats().Gaps; gaps != 1 {
		t.Errorf("%d gaps", gaps)
	}
	nodes[0].Await("cluster_state:ok", "CLUSTER", "INFO")
	b.Publish("news", "after")
	ca.Wants("after")
}
