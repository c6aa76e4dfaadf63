package app

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/url"
	"time"
)

// DefaultListen can be reached from this machine only.
const DefaultListen = "127.0.0.1:8080"

// Faults returns all invalid settings.
func (o *ServerOptions) Faults() []string {
	var faults []string
	fault := func(name string, value any, want string) {
		faults = append(faults, fmt.Sprintf("%s %q: must be %s", name, fmt.Sprint(value), want))
	}
	for name, address := range map[string]string{"listen": o.Listen, "admin-address": o.Admin} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || name == "listen") {
			fault(name, address, "host:port, such as "+DefaultListen)
		}
	}
	for _, origin := range o.API.Origins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			fault("cors-origin", origin, "scheme://host or scheme://host:port, or *")
		}
	}
	for name, value := range map[string]time.Duration{
		"header-timeout": o.HeaderTimeout, "read-timeout": o.ReadTimeout, "idle-timeout": o.IdleTimeout, "drain-timeout": o.DrainTimeout,
		"drain-delay": o.DrainDelay, "results-age": o.API.ResultsAge, "store-wait": o.API.StoreWait,
		"rollup-interval": o.RollupInterval,
	} {
		if value < 0 {
			fault(name, value, "0 or more")
		}
	}
	for name, value := range map[string]float64{
		"max-body": float64(o.API.MaxBody), "max-events-body": float64(o.API.MaxEvents), "results-memory": float64(o.API.ResultsMemory), "rate-limit": o.API.TokenRate,
		"store-concurrency": float64(o.API.StoreSlots), "store-queue": float64(o.API.StoreQueue),
		"retention-days": float64(o.RetentionDays), "auth-failures": float64(o.API.AuthFailures),
	} {
		if !(value >= 0) || math.IsInf(value, 0) {
			fault(name, value, "a number from 0")
		}
	}
	if o.API.WaitingEvents < 1 {
		fault("events-queue", o.API.WaitingEvents, "1 or more")
	}
	return faults
}

// Exposures returns warnings about addresses that other machines can reach.
func (o *ServerOptions) Exposures(hasTLS bool) []string {
	var warnings []string
	if !isLocal(o.Listen) && !hasTLS {
		warnings = append(warnings, "listen "+o.Listen+" can be reached from other machines without TLS, so tokens are sent in clear text; "+
			"set --tls-cert and --tls-key, or listen at "+DefaultListen+" behind a proxy with TLS")
	}
	if o.Admin != "" && !isLocal(o.Admin) {
		warnings = append(warnings, "admin-address "+o.Admin+" can be reached from other machines and requires no token")
	}
	return warnings
}

// isLocal reports whether an address can be reached from this machine only.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Logger returns a logger with a level and a format: JSON or text.
func Logger(to io.Writer, level string, asJSON bool) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the caller has validated the level
	options := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
