package bridge

import "github.com/chert-http/chert/stats"

// stray is a request of a direct handler that has lost its loop. Its session keeps nothing about it
// that another goroutine could read, since nearly none is lost: Config.strays has those of all.
type stray struct {
	r     stats.Request
	since int64
}

// Strayed shows r, which has come at since, as that of a session until Found is called.
func (cfg *Config) Strayed(session any, r stats.Request, since int64) {
	cfg.strays.Store(session, stray{r, since})
}

// Found ends what Strayed began.
func (cfg *Config) Found(session any) { cfg.strays.Delete(session) }

// Stray calls f with the request of a session that is a stray, as conn.Inspected.Running
// does.
func (cfg *Config) Stray(session any, before int64, f func(stats.Request, int64)) {
	if v, ok := cfg.strays.Load(session); ok {
		if one := v.(stray); one.since < before {
			f(one.r, one.since)
		}
	}
}
