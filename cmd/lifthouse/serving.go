package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"lifthouse/api"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

// serveOptions are how a command that serves does so.
type serveOptions struct {
	listen, admin        string
	tlsCert, tlsKey      string
	logFormat, logLevel  string
	headers, reads, idle time.Duration
	drain, drainDelay    time.Duration
	times                ingest.Times // of events
	retention            int          // days
	rollupInterval       time.Duration
	api                  api.Options
}

// defaultListen reaches this machine only.
const defaultListen = "127.0.0.1:8080"

// The values of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// serveFlags gives a command the settings of serving.
func (p *program) serveFlags(cmd *cobra.Command) {
	o, flags, d := &p.serving, cmd.Flags(), api.DefaultOptions
	flags.StringVar(&o.listen, "listen", defaultListen, "address to answer at")
	flags.StringVar(&o.admin, "admin-address", "", "address of /metrics and /debug/pprof, which ask for no token, such as 127.0.0.1:8081; none: they are not served")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "PEM file with the certificate chain; with --tls-key")
	flags.StringVar(&o.tlsKey, "tls-key", "", "PEM file with the certificate's key")
	flags.StringVar(&o.logFormat, "log-format", logText, "text or json")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info (each request), warn or error")
	flags.DurationVar(&o.headers, "header-timeout", 10*time.Second, "how long a client may take to send its headers")
	flags.DurationVar(&o.reads, "read-timeout", time.Minute, "how long a client may take to send a request")
	flags.DurationVar(&o.idle, "idle-timeout", 2*time.Minute, "how long a connection is kept that sends nothing")
	flags.DurationVar(&o.drain, "drain-timeout", 5*time.Second, "how long requests under way may take when the server is stopped")
	flags.DurationVar(&o.drainDelay, "drain-delay", 0, "how long /readyz says 503 before a server that is stopped takes no more requests")
	flags.StringSliceVar(&o.api.Origins, "cors-origin", nil, "origins whose pages may read answers, such as https://dash.example.com; *: any")
	flags.Int64Var(&o.api.MaxBody, "max-body", d.MaxBody, "most bytes of a request's body; 0: no limit")
	flags.Int64Var(&o.api.MaxEvents, "max-events-body", d.MaxEvents, "most bytes of a body of events, decompressed; 0: no limit")
	flags.Int64Var(&o.api.WaitingEvents, "events-queue", d.WaitingEvents, "events that may wait to be written before senders are told to come back")
	p.timeFlags(cmd)
	flags.IntVar(&o.retention, "retention-days", 0, "days after its end, once it is stopped, that a campaign or widget is erased with all its events, at start and each day; 0: never")
	flags.DurationVar(&o.rollupInterval, "rollup-interval", time.Second, "how often the sums from which large reports are answered take up new events, an embedded store's; 0: never, reports count the events")
	flags.DurationVar(&o.api.ResultsAge, "results-age", d.ResultsAge, "how long results are good for while nothing changes; 0: they are computed for every request")
	flags.Int64Var(&o.api.ResultsMemory, "results-memory", d.ResultsMemory, "bytes that kept results may take; 0: none are kept")
	flags.Float64Var(&o.api.TokenRate, "rate-limit", d.TokenRate, "requests a second of one token, and twice as many at once; 0: no limit")
	flags.IntVar(&o.api.AuthFailures, "auth-failures", d.AuthFailures, "unknown tokens a minute from one address before it gets 429; valid tokens are never refused; 0: no limit")
	flags.IntVar(&o.api.StoreSlots, "store-concurrency", d.StoreSlots, "requests that ask the store at the same time; 0: no limit")
	flags.IntVar(&o.api.StoreQueue, "store-queue", d.StoreQueue, "requests that may wait for the store")
	flags.DurationVar(&o.api.StoreWait, "store-wait", d.StoreWait, "how long one of them waits before it is refused")
}

// The names of the settings that say which times events may have.
const (
	maxEventAge  = "max-event-age"
	maxEventSkew = "max-event-skew"
)

// timeFlags are of every command that takes events.
func (p *program) timeFlags(cmd *cobra.Command) {
	p.serving.times = ingest.DefaultTimes
	cmd.Flags().DurationVar(&p.serving.times.MaxAge, maxEventAge, ingest.DefaultTimes.MaxAge, "how long ago events may be, such as 2160h; 0: any time since 1971")
	cmd.Flags().DurationVar(&p.serving.times.MaxSkew, maxEventSkew, ingest.DefaultTimes.MaxSkew, "how far ahead of the clock events may be")
}

// faults are all that is wrong with the settings, by their names.
func (o *serveOptions) faults() []string {
	var faults []string
	fault := func(name string, value any, want string) {
		faults = append(faults, fmt.Sprintf("%s %q: want %s", name, fmt.Sprint(value), want))
	}
	for name, address := range map[string]string{"listen": o.listen, "admin-address": o.admin} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || name == "listen") {
			fault(name, address, "host:port, such as "+defaultListen)
		}
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		faults = append(faults, "tls-cert, tls-key: want both or none")
	}
	if o.logFormat != logText && o.logFormat != logJSON {
		fault("log-format", o.logFormat, logText+" or "+logJSON)
	}
	if err := new(slog.Level).UnmarshalText([]byte(o.logLevel)); err != nil {
		fault("log-level", o.logLevel, "debug, info, warn or error")
	}
	for _, origin := range o.api.Origins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			fault("cors-origin", origin, "scheme://host or scheme://host:port, or *")
		}
	}
	for name, value := range map[string]time.Duration{
		"header-timeout": o.headers, "read-timeout": o.reads, "idle-timeout": o.idle, "drain-timeout": o.drain,
		"drain-delay": o.drainDelay, "results-age": o.api.ResultsAge, "store-wait": o.api.StoreWait,
		"rollup-interval": o.rollupInterval, maxEventAge: o.times.MaxAge, maxEventSkew: o.times.MaxSkew,
	} {
		if value < 0 {
			fault(name, value, "0 or more")
		}
	}
	for name, value := range map[string]float64{
		"max-body": float64(o.api.MaxBody), "max-events-body": float64(o.api.MaxEvents), "results-memory": float64(o.api.ResultsMemory), "rate-limit": o.api.TokenRate,
		"store-concurrency": float64(o.api.StoreSlots), "store-queue": float64(o.api.StoreQueue),
		"retention-days": float64(o.retention), "auth-failures": float64(o.api.AuthFailures),
	} {
		if !(value >= 0) || math.IsInf(value, 0) {
			fault(name, value, "a number from 0")
		}
	}
	if o.api.WaitingEvents < 1 {
		fault("events-queue", o.api.WaitingEvents, "1 or more")
	}
	slices.Sort(faults)
	return faults
}

// limitFaults are those of the settings that every command has.
func (p *program) limitFaults() []string {
	var faults []string
	if p.limits.Time < 0 {
		faults = append(faults, fmt.Sprintf("query-timeout %q: want 0 or more", p.limits.Time))
	}
	if p.limits.Memory < 0 {
		faults = append(faults, fmt.Sprintf("query-memory \"%d\": want 0 or more", p.limits.Memory))
	}
	return faults
}

// logger writes to the file as the settings say.
func (o *serveOptions) logger(to *os.File) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.logLevel)) // was checked
	options := &slog.HandlerOptions{Level: level}
	if o.logFormat == logJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// certificate is nil where the server has none.
func (p *program) certificate() (*tls.Config, error) {
	if p.serving.tlsCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(p.path(p.serving.tlsCert), p.path(p.serving.tlsKey))
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", p.serving.tlsCert, p.serving.tlsKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// local says whether only this machine reaches the address.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exposures warn of addresses that reach further than they should.
func (o *serveOptions) exposures() []string {
	var warnings []string
	if !local(o.listen) && o.tlsCert == "" {
		warnings = append(warnings, "listen "+o.listen+" is reached from elsewhere, without TLS: whoever is on the way reads the tokens. "+
			"Give --tls-cert and --tls-key, or listen at "+defaultListen+" behind a proxy that has them")
	}
	if o.admin != "" && !local(o.admin) {
		warnings = append(warnings, "admin-address "+o.admin+" is reached from elsewhere, and asks for no token")
	}
	return warnings
}
