package retry

// MaxExtra is how many tries of a request may follow the first.
const MaxExtra = 2

// Tries are the tries of one request. The zero Tries is that of a request before its first. It belongs to the goroutine
// or loop that has the request, and holds no pointers.
type Tries struct {
	servers [1 + MaxExtra]uint64 // as the caller names them; those of the first n tries
	n       uint8
}

// Begin notes a try at a server, by an ID that stands for no other one while the request lives. It reports false, and
// notes nothing, if no try is left or if the server has been tried: only a Reconnect may follow a try at the same
// server, and that is noted by Failed.
func (t *Tries) Begin(server uint64) bool {
	if int(t.n) == len(t.servers) || t.Tried(server) {
		return false
	}
	t.servers[t.n] = server
	t.n++
	return true
}

// Tried reports whether the server had a try of this request, so that it gets no other.
func (t *Tries) Tried(server uint64) bool {
	for _, s := range t.servers[:t.n] {
		if s == server {
			return true
		}
	}
	return false
}

// Len returns the number of tries, reconnects included.
func (t *Tries) Len() int { return int(t.n) }

// Failed decides about a request whose latest try failed. more: the balance has a server that has not been tried. A
// retry that the budget must allow is withdrawn from it, and a Reconnect is noted as a try, so the caller does what
// Action says. If the retry does not happen after all, nothing is refunded.
func (t *Tries) Failed(now int64, p *Policy, r *Request, a *Attempt, more bool, b *Budget) Verdict {
	v := Decide(p, r, a)
	if v.Action == Fail {
		return v
	}
	switch {
	case t.n == 0 || int(t.n) == len(t.servers):
		v.refuse(TriesUsed)
	case v.Action == Reconnect && t.n > 1:
		// Retries have new connections, so the caller is mistaken about Reused: the same server never gets a third
		// chance by that.
		v.refuse(TriesUsed)
	case v.Action == Next && !more:
		v.refuse(NoOther)
	case v.Charged && !b.Withdraw(now):
		v.refuse(OverBudget)
	case v.Action == Reconnect:
		t.servers[t.n] = t.servers[t.n-1]
		t.n++
	}
	return v
}

func (v *Verdict) refuse(o Obstacle) { v.Action, v.Obstacle, v.Charged = Fail, o, false }
