package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/ratelimit/redisstore"
	"github.com/spf13/cobra"
)

// rateFlags are the flags that limit request rates.
type rateFlags struct {
	rates     ratesFlag
	store     storeFlag
	failure   failureFlag
	timeout   time.Duration
	instances int
}

func (f *rateFlags) add(cmd *cobra.Command) {
	all := cmd.Flags()
	all.Var(&f.rates, "rate-limit", "the request rate of a client address: 100/s, 30/m or '1000/h burst 50';\nmay be "+
		"repeated, all must admit")
	all.Var(&f.store, "rate-store", "share the limits through this Redis: redis://HOST:PORT/DB")
	all.Var(&f.failure, "rate-failure", "while the store is unavailable: local (each process limits by itself), open "+
		"or closed")
	f.timeout, f.instances = defaultRateTimeout, 1
	all.Var((*durationFlag)(&f.timeout), "rate-timeout", "how long a request waits for the store")
	all.Var((*numberFlag)(&f.instances), "rate-instances",
		"how many processes share the store; with 'local' each admits its part of the limits")

	mustComplete(cmd, "rate-failure", cobra.FixedCompletions([]string{"local", "open", "closed"},
		cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"rate-limit", "rate-store", "rate-timeout", "rate-instances"} {
		mustComplete(cmd, name, cobra.NoFileCompletions)
	}
}

const defaultRateTimeout = 100 * time.Millisecond

// over returns r with the values of the command line, which override the file. sites reports
// whether there are other limits that use the store.
func (f *rateFlags) over(r config.RateLimit, sites bool, given func(flag string) bool) (config.RateLimit, error) {
	if given("rate-limit") {
		r.Rates = f.rates
	}
	if given("rate-store") {
		r.Store = string(f.store)
	}
	if given("rate-failure") {
		r.Failure = redisstore.Failure(f.failure).String()
	}
	if given("rate-timeout") {
		r.Timeout = f.timeout
	}
	if given("rate-instances") {
		r.Instances = f.instances
	}
	switch {
	case r.Store != "" && r.Rates == nil && !sites:
		return r, errors.New("--rate-store has no effect without --rate-limit")
	case r.Store == "" && (given("rate-failure") || given("rate-timeout") || given("rate-instances")):
		return r, errors.New("--rate-failure, --rate-timeout and --rate-instances require --rate-store")
	case given("rate-timeout") && r.Timeout < config.LeastRateTimeout:
		return r, fmt.Errorf("--rate-timeout wants %v at least", config.LeastRateTimeout)
	case given("rate-instances") && (r.Instances < 1 || r.Instances > config.MaxInstances):
		return r, fmt.Errorf("--rate-instances wants a number from 1 to %d", config.MaxInstances)
	}
	return r, nil
}

// limiter makes rate limits whose buckets are in one store.
type limiter struct {
	store  ratelimit.Store
	closer io.Closer // the shared store; nil if there is none
}

// openLimiter makes the limiter of a configuration; rates reports whether it has any limit.
// memory is the store of the process, which outlives a reload: clients do not get new
// buckets by it.
func openLimiter(r config.RateLimit, rates bool, memory *ratelimit.Memory, errs *slog.Logger) (limiter, error) {
	if r.Store == "" || !rates {
		return limiter{store: memory}, nil
	}
	store, err := openStore(r, memory, errs)
	if err != nil {
		return limiter{}, err
	}
	return limiter{store, store}, nil
}

// limit makes the middleware of rates, at least one, which all must admit. name is that of
// their buckets.
func (l limiter) limit(name string, rates []ratelimit.Rate) (func(http.Handler) http.Handler, error) {
	opts := &ratelimit.Options{Store: l.store}
	for i, rate := range rates {
		rule := ratelimit.Rule{Name: name, Rate: rate}
		if i > 0 {
			rule.Name += "-" + strconv.Itoa(i+1)
		}
		opts.Rules = append(opts.Rules, rule)
	}
	return ratelimit.New(opts)
}

func (l limiter) close() {
	if l.closer != nil {
		l.closer.Close()
	}
}

// onOrdinary is a handler without a fast path, as one that waits for a store is, in a place
// beside others that have one.
type onOrdinary struct{ http.Handler }

// ServeDirect implements direct.Handler.
func (onOrdinary) ServeDirect(*direct.Exchange) bool { return false }

// openStore makes sure that the store can be used.
func openStore(r config.RateLimit, memory *ratelimit.Memory, errs *slog.Logger) (*redisstore.Store, error) {
	o := &redisstore.Options{Timeout: r.Timeout, Instances: r.Instances, Memory: memory, Logger: errs}
	if r.Failure != "" {
		var err error
		if o.Failure, err = redisstore.ParseFailure(r.Failure); err != nil {
			return nil, err
		}
	}
	store, err := redisstore.OpenURL(r.Store, o)
	if err != nil {
		return nil, err
	}
	if err := store.Check(context.Background()); err != nil {
		store.Close()
		return nil, fmt.Errorf("the store of the rate limits cannot be used: %w", err)
	}
	return store, nil
}

// checkStore checks the form of a URL.
func checkStore(s string) error {
	store, err := redisstore.OpenURL(s, nil)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "redisstore: "))
	}
	return store.Close()
}

func checkFailure(s string) error {
	_, err := redisstore.ParseFailure(s)
	return err
}

// ratesFlag is the value of --rate-limit.
type ratesFlag []ratelimit.Rate

func (f *ratesFlag) String() string {
	var all []string
	for _, r := range *f {
		all = append(all, r.String())
	}
	return strings.Join(all, ", ")
}

func (f *ratesFlag) Type() string { return "rate" }

func (f *ratesFlag) Set(s string) error {
	r, err := ratelimit.ParseRate(s)
	if err == nil {
		*f = append(*f, r)
	}
	return err
}

// storeFlag is the value of --rate-store.
type storeFlag string

func (f *storeFlag) String() string { return string(*f) }

func (f *storeFlag) Type() string { return "url" }

// Set accepts anything: its error would be printed with the value, which contains a password. serveOptions.check
// checks it.
func (f *storeFlag) Set(s string) error {
	*f = storeFlag(s)
	return nil
}

// failureFlag is the value of --rate-failure.
type failureFlag redisstore.Failure

func (f *failureFlag) String() string { return redisstore.Failure(*f).String() }

func (f *failureFlag) Type() string { return "policy" }

func (f *failureFlag) Set(s string) error {
	v, err := redisstore.ParseFailure(s)
	if err == nil {
		*f = failureFlag(v)
	}
	return err
}
