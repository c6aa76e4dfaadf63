package app

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
)

// DefaultListen can be reached from this machine only.
const DefaultListen = "127.0.0.1:8080"

// AddressFaults returns the invalid addresses and origins.
func (o *ServerOptions) AddressFaults() []string {
	var faults []string
	fault := func(name string, value any, want string) {
		faults = append(faults, fmt.Sprintf("%s %q: must be %s", name, fmt.Sprint(value), want))
	}
	for name, address := range map[string]string{"listen": o.Listen, "admin-address": o.Admin} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || name == "listen") {
			fault(name, address, "host:port, such as "+DefaultListen)
		}
	}
	if public := o.API.PublicURL; public != "" {
		if u, err := url.Parse(public); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(public, "/") {
			fault("public-url", public, "http:// or https:// with a host, without a slash at the end, such as https://lifthouse.example.com")
		}
	}
	for _, origin := range o.API.Origins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			fault("cors-origin", origin, "scheme://host or scheme://host:port, or *")
		}
	}
	return faults
}

// NetworkWarnings returns warnings about addresses that other machines can reach.
func (o *ServerOptions) NetworkWarnings(hasTLS bool) []string {
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

// NewLogger returns a logger with a level and a format: JSON or text.
func NewLogger(to io.Writer, level string, asJSON bool) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the caller has validated the level
	options := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
