package schema

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema/faults"
)

const embeddedPrefix = "embedded:"

// DefaultStore is the default address: an embedded store below the working directory.
const DefaultStore = embeddedPrefix + "./data"

// Address is the parsed address of a store: the directory of an embedded store, which this process opens, or ClickHouse
// servers.
type Address struct {
	Dir     string              // directory of an embedded store; empty for servers
	Options *clickhouse.Options // connection options; nil for an embedded store that is not open
	Cluster string              // name of the cluster; empty: one server, or replicas that ON CLUSTER does not manage
}

// SpareConns is the number of connections in addition to those of reports. They serve writes and their look-ups,
// catalogue changes, rejected lines and background tasks, so none of these waits for a report.
const SpareConns = 6

// SetConcurrency sets the maximum number of connections to servers: the number of concurrent requests plus SpareConns.
// It has no effect on an embedded store, on an address that sets max_open_conns, and if requests is not positive.
func (a *Address) SetConcurrency(requests int) {
	if a.Dir != "" || a.Options.MaxOpenConns > 0 || requests <= 0 {
		return
	}
	a.Options.MaxOpenConns = requests + SpareConns
	a.Options.MaxIdleConns = requests + SpareConns
}

// The default timeouts. A statement fails if the server sends nothing for the read timeout. Queries over the native
// protocol send progress continuously.
const (
	dialTimeout       = 3 * time.Second // per host
	nativeReadTimeout = 90 * time.Second
	httpReadTimeout   = 5 * time.Minute
	connLifetime      = 5 * time.Minute // new connections try the first host again
)

// splitAddress splits the address of a server into scheme, user and password, hosts and the rest. url.Parse cannot
// parse an address with several hosts.
func splitAddress(address string) (scheme, user, hosts, rest string, ok bool) {
	scheme, address, ok = strings.Cut(address, "://")
	if at := strings.IndexAny(address, "/?#"); at >= 0 {
		address, rest = address[:at], address[at:]
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		address, user = address[at+1:], address[:at]
	}
	return scheme, user, address, rest, ok
}

// ShowAddress returns the address without secrets: scheme, hosts and path, without user, password and query. Parts that
// may contain a secret are replaced by "…".
func ShowAddress(address string) string {
	if strings.HasPrefix(address, embeddedPrefix) {
		return address
	}
	scheme, user, hosts, rest, ok := splitAddress(address)
	if !ok {
		if strings.Contains(address, "@") {
			return "…"
		}
		return address
	}
	u, err := url.Parse("x://h" + rest)
	if _, userErr := url.Parse("x://" + user + "@h"); err != nil || userErr != nil ||
		strings.ContainsAny(user+rest, "@") {
		return scheme + "://…" // a password that is not percent-encoded may be anywhere
	}
	return scheme + "://" + hosts + u.EscapedPath()
}

// schemes maps the scheme of a server address to its default ports.
var schemes = map[string]struct {
	dsn    string
	port   string
	secure bool
}{
	"clickhouse":  {"clickhouse", "9000", false},
	"clickhouses": {"clickhouse", "9440", true},
	"http":        {"http", "8123", false},
	"https":       {"https", "8443", true},
}

// ParseAddress parses the address of a store: embedded:DIR, clickhouse://…, clickhouses://…, http://… or https://….
// Environment variables supply the user, the password and the certificates that the address omits. Parameters are those
// of the driver, or else settings of ClickHouse.
func ParseAddress(address string, getenv func(string) string) (Address, error) {
	if dir, ok := strings.CutPrefix(address, embeddedPrefix); ok {
		if dir == "" {
			return Address{}, errors.New(`store "embedded:": the directory is missing: use embedded:DIR`)
		}
		return Address{Dir: dir}, nil
	}
	name, user, hosts, rest, _ := splitAddress(address)
	scheme, known := schemes[name]
	if !known {
		return Address{}, fmt.Errorf("store %q: must be embedded:DIR, clickhouse://user:pass@host:9000/db, "+
			"clickhouses://…, http://… or https://…", ShowAddress(address))
	}
	if user != "" {
		user += "@"
	}
	u, err := url.Parse("x://" + user + "h" + rest)
	if err != nil || strings.Contains(u.Path, "@") { // err is not wrapped: it may contain the password
		return Address{}, fmt.Errorf("store %s: must be %s://user:pass@host:port/db, with special characters of the "+
			"password percent-encoded", ShowAddress(address), name)
	}
	p := addressParser{query: u.Query(), getenv: getenv, secure: scheme.secure}
	p.AddIf(p.query.Has("secure"), "secure", nil, "must be omitted: clickhouses:// and https:// have TLS")
	addresses := p.parseHosts(hosts, scheme.port)
	certificates := p.loadCertificates()
	cluster := p.takeParameter("cluster")
	p.checkIdentifier(fmt.Sprintf("cluster=%q", cluster), cluster)
	database := strings.TrimPrefix(u.Path, "/")
	p.checkIdentifier(fmt.Sprintf("database %q", database), database)
	password := p.readPassword()
	if len(p.List) > 0 {
		return Address{}, fmt.Errorf("store %s:\n  %s", ShowAddress(address), p.List.Join("\n  "))
	}

	if p.secure {
		p.query.Set("secure", "true")
	}
	u.Scheme = scheme.dsn
	u.Host = "h"
	u.RawQuery = p.query.Encode()
	options, err := clickhouse.ParseDSN(u.String())
	if err != nil {
		return Address{}, fmt.Errorf("store %s: %w", ShowAddress(address), err)
	}
	options.Addr = addresses
	options.Auth.Username = cmp.Or(options.Auth.Username, getenv("CLICKHOUSE_USER"))
	options.Auth.Password = cmp.Or(options.Auth.Password, password)
	if options.TLS != nil {
		options.TLS.MinVersion = tls.VersionTLS12
		options.TLS.RootCAs = certificates.RootCAs
		options.TLS.Certificates = certificates.Certificates
	}
	readTimeout := nativeReadTimeout
	if options.Protocol == clickhouse.HTTP {
		readTimeout = httpReadTimeout
	}
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	options.ReadTimeout = cmp.Or(options.ReadTimeout, readTimeout)
	options.ConnMaxLifetime = cmp.Or(options.ConnMaxLifetime, connLifetime)
	return Address{Options: options, Cluster: cluster}, nil
}

// addressParser parses the address of a server and collects the errors.
type addressParser struct {
	query  url.Values
	getenv func(string) string
	secure bool
	faults.Collector
}

// parseHosts returns hosts, which are separated by commas, with their ports.
func (p *addressParser) parseHosts(hosts, defaultPort string) []string {
	var addresses []string
	for one := range strings.SplitSeq(hosts, ",") {
		host, given, err := net.SplitHostPort(one)
		if err != nil { // no port
			host = strings.Trim(one, "[]")
			given = defaultPort
		}
		n, err := strconv.Atoi(given)
		switch {
		case host == "":
			p.AddField(fmt.Sprintf("host %q", one), "must be host:port; separate several hosts with commas")
		case err != nil || n < 1 || n > 65535:
			p.AddField(fmt.Sprintf("host %q", one), "the port must be from 1 to 65535")
		}
		addresses = append(addresses, net.JoinHostPort(host, given))
	}
	return addresses
}

// checkIdentifier checks the name of a cluster or a database, which may be empty.
func (p *addressParser) checkIdentifier(field, name string) {
	p.AddIf(name != "" && !identifierForm.MatchString(name), field, nil, "must be a name of letters, digits, _ and -")
}

// readPassword returns the password of the environment, which keeps secrets out of the address.
func (p *addressParser) readPassword() string {
	const passwordFile = "CLICKHOUSE_PASSWORD_FILE"
	password := p.getenv("CLICKHOUSE_PASSWORD")
	file := p.getenv(passwordFile)
	if password != "" || file == "" {
		return password
	}
	text, err := os.ReadFile(file)
	if err != nil {
		p.AddField(passwordFile, "%v", err)
	}
	return strings.TrimRight(string(text), "\r\n")
}

// takeParameter returns a parameter and removes it from the query, because the driver does not know it.
func (p *addressParser) takeParameter(name string) string {
	value := p.query.Get(name)
	p.query.Del(name)
	return value
}

var identifierForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// loadCertificates returns the TLS configuration with the certificates that the address names, or else the environment.
func (p *addressParser) loadCertificates() *tls.Config {
	given := map[string]string{}
	for name, variable := range map[string]string{
		"ca": "CLICKHOUSE_CA", "cert": "CLICKHOUSE_CERT", "key": "CLICKHOUSE_KEY",
	} {
		given[name] = p.takeParameter(name)
		switch {
		case given[name] != "" && !p.secure:
			p.AddField(name, "requires TLS; use clickhouses:// or https://")
		case given[name] == "" && p.secure:
			given[name] = p.getenv(variable)
		}
	}
	slices.SortFunc(p.List, func(a, b faults.Fault) int { return strings.Compare(a.String(), b.String()) })
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if !p.secure {
		return config
	}
	if file := given["ca"]; file != "" {
		text, err := os.ReadFile(file)
		config.RootCAs = x509.NewCertPool()
		if err != nil {
			p.AddField("ca", "%v", err)
		} else if !config.RootCAs.AppendCertsFromPEM(text) {
			p.AddField("ca", "%s contains no PEM certificate", file)
		}
	}
	if (given["cert"] == "") != (given["key"] == "") {
		p.AddField("cert, key", "must be given together")
	} else if given["cert"] != "" {
		pair, err := tls.LoadX509KeyPair(given["cert"], given["key"])
		if err != nil {
			p.AddField("cert, key", "%v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
