package schema

import (
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
	"github.com/agnivade/levenshtein"
)

const embeddedPrefix = "embedded:"

// DefaultStore is the store of a first start: in this process, below the
// working directory.
const DefaultStore = embeddedPrefix + "./data"

// Home says where a store lives: in a directory of this machine, held by this
// process, or on ClickHouse servers.
type Address struct {
	Dir     string              // of an embedded store; empty for servers
	Options *clickhouse.Options // of servers; nil for an embedded store that is not open
	Cluster string              // whose servers share the store; empty: one server, or replicas that are made alike by other means
}

// SpareConns are the connections beside those of reports, so that nothing else
// waits for one: writes and their look-ups, starts and stops, rejected lines,
// and what a process does by itself each second.
const SpareConns = 6

// Concurrent has servers asked by so many requests at the same time, unless the
// address says how many connections there are.
func (h *Address) Concurrent(requests int) {
	if h.Dir != "" || h.Options.MaxOpenConns > 0 || requests <= 0 {
		return
	}
	h.Options.MaxOpenConns = requests + SpareConns
	h.Options.MaxIdleConns = requests + SpareConns
}

// The times that hold where an address says nothing. A statement that sends
// nothing for that long is given up; a query over the native protocol sends its
// progress all the time.
const (
	dialTimeout       = 3 * time.Second // of one host
	nativeReadTimeout = 90 * time.Second
	httpReadTimeout   = 5 * time.Minute
	connLifetime      = 5 * time.Minute // after which the first of several hosts is tried again
)

// What the environment may say, so that an address can do without secrets.
const (
	userVariable         = "CLICKHOUSE_USER"
	passwordVariable     = "CLICKHOUSE_PASSWORD"
	passwordFileVariable = "CLICKHOUSE_PASSWORD_FILE"
	caVariable           = "CLICKHOUSE_CA"
	certVariable         = "CLICKHOUSE_CERT"
	keyVariable          = "CLICKHOUSE_KEY"
)

// split cuts a server's address into scheme, user and password, hosts and the
// rest, which url.Parse does not do where there are several hosts.
func split(address string) (scheme, user, hosts, rest string, ok bool) {
	scheme, address, ok = strings.Cut(address, "://")
	if at := strings.IndexAny(address, "/?#"); at >= 0 {
		address, rest = address[:at], address[at:]
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		address, user = address[at+1:], address[:at]
	}
	return scheme, user, address, rest, ok
}

// ShowAddress is the address without what may be secret: scheme, hosts and
// path, but no user, password or query.
func ShowAddress(address string) string {
	if strings.HasPrefix(address, embeddedPrefix) {
		return address
	}
	scheme, user, hosts, rest, ok := split(address)
	if !ok {
		if strings.Contains(address, "@") {
			return "…"
		}
		return address
	}
	u, err := url.Parse("x://h" + rest)
	if _, userErr := url.Parse("x://" + user + "@h"); err != nil || userErr != nil || strings.ContainsAny(user+rest, "@") {
		return scheme + "://…" // a password that is not percent-encoded may be anywhere
	}
	return scheme + "://" + hosts + u.EscapedPath()
}

// schemes are those of servers' addresses, with the ports that they mean.
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

// ParseHome reads a store's address: embedded:DIR, clickhouse://…,
// clickhouses://…, http://… or https://…. What the address leaves open, the
// environment may say. The error tells all faults.
func ParseAddress(address string, getenv func(string) string) (Address, error) {
	if dir, ok := strings.CutPrefix(address, embeddedPrefix); ok {
		if dir == "" {
			return Address{}, errors.New(`store "embedded:": the directory is missing; write embedded:DIR`)
		}
		return Address{Dir: dir}, nil
	}
	name, user, hosts, rest, _ := split(address)
	scheme, known := schemes[name]
	if !known {
		return Address{}, fmt.Errorf("store %q: want embedded:DIR, clickhouse://user:pass@host:9000/db, clickhouses://…, http://… or https://…", ShowAddress(address))
	}
	if user != "" {
		user += "@"
	}
	u, err := url.Parse("x://" + user + "h" + rest)
	if err != nil || strings.Contains(u.Path, "@") { // which may quote the password
		return Address{}, fmt.Errorf("store %s: want %s://user:pass@host:port/db, with special characters of the password percent-encoded", ShowAddress(address), name)
	}
	p := addressParser{query: u.Query(), getenv: getenv, secure: scheme.secure}
	return p.address(u, name, scheme.dsn, scheme.port, hosts, ShowAddress(address))
}

// parsed is an address while it is read.
type addressParser struct {
	query  url.Values
	getenv func(string) string
	secure bool
	faults []string
}

func (p *addressParser) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *addressParser) address(u *url.URL, name, dsn, port, hosts, shown string) (Address, error) {
	p.checkParameters(name)
	if secure, err := strconv.ParseBool(p.query.Get("secure")); err == nil && name == "clickhouse" {
		p.secure = secure
		if secure {
			port = schemes["clickhouses"].port
		}
	}
	u.Scheme, u.Host = dsn, "h"
	addresses := p.hosts(hosts, port)
	certificates := p.certificates()
	cluster := p.take("cluster")
	if cluster != "" && !identifierForm.MatchString(cluster) {
		p.fault("cluster=%q: want a name of letters, digits, _ and -", cluster)
	}
	if database := strings.TrimPrefix(u.Path, "/"); database != "" && !identifierForm.MatchString(database) {
		p.fault("database %q: want a name of letters, digits, _ and -", database)
	}
	password := p.password()
	if len(p.faults) > 0 {
		return Address{}, fmt.Errorf("store %s:\n  %s", shown, strings.Join(p.faults, "\n  "))
	}
	p.query.Del("secure")
	if p.secure {
		p.query.Set("secure", "true")
	}
	u.RawQuery = p.query.Encode()
	options, err := clickhouse.ParseDSN(u.String())
	if err != nil {
		return Address{}, fmt.Errorf("store %s: %w", shown, err)
	}
	options.Addr = addresses
	if options.Auth.Username == "" {
		options.Auth.Username = p.getenv(userVariable)
	}
	if options.Auth.Password == "" {
		options.Auth.Password = password
	}
	if options.TLS != nil {
		options.TLS.MinVersion = tls.VersionTLS12
		options.TLS.RootCAs, options.TLS.Certificates = certificates.RootCAs, certificates.Certificates
	}
	setTimes(options)
	return Address{Options: options, Cluster: cluster}, nil
}

func setTimes(o *clickhouse.Options) {
	if o.DialTimeout == 0 {
		o.DialTimeout = dialTimeout
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = nativeReadTimeout
		if o.Protocol == clickhouse.HTTP {
			o.ReadTimeout = httpReadTimeout
		}
	}
	if o.ConnMaxLifetime == 0 {
		o.ConnMaxLifetime = connLifetime
	}
}

// take returns a parameter that is ours and not the driver's.
func (p *addressParser) take(name string) string {
	value := p.query.Get(name)
	p.query.Del(name)
	return value
}

var identifierForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (p *addressParser) hosts(list, port string) []string {
	var addresses []string
	for one := range strings.SplitSeq(list, ",") {
		host, given, err := net.SplitHostPort(one)
		if err != nil { // no port
			host, given = strings.Trim(one, "[]"), port
		}
		n, err := strconv.Atoi(given)
		switch {
		case host == "":
			p.fault("host %q: want host:port, several of them with commas between", one)
		case err != nil || n < 1 || n > 65535:
			p.fault("host %q: want a port from 1 to 65535", one)
		}
		addresses = append(addresses, net.JoinHostPort(host, given))
	}
	return addresses
}

// The parameters of an address. Others are settings of ClickHouse, which it
// judges itself.
const (
	aText     = "text"
	aDuration = "a duration such as 5s"
	aNumber   = "a whole number from 1"
	aBool     = "true or false"
)

var parameters = map[string]string{
	"dial_timeout": aDuration, "read_timeout": aDuration, "conn_max_lifetime": aDuration,
	"max_open_conns": aNumber, "max_idle_conns": aNumber,
	"secure": aBool, "skip_verify": aBool,
	"connection_open_strategy": "in_order, round_robin or random", "compress": "true, false, lz4, zstd, gzip, deflate or br",
	"tls_server_name": aText, "username": aText, "password": aText, "database": aText, "http_path": aText, "http_proxy": aText,
	"ca": aText, "cert": aText, "key": aText, "cluster": aText,
}

func fits(value, want string) bool {
	var err error
	switch want {
	case aText:
		return value != ""
	case aDuration:
		var d time.Duration
		d, err = time.ParseDuration(value)
		return err == nil && d > 0
	case aNumber:
		var n int
		n, err = strconv.Atoi(value)
		return err == nil && n > 0
	case aBool:
		_, err = strconv.ParseBool(value)
		return err == nil
	}
	return slices.Contains(strings.FieldsFunc(want, func(r rune) bool { return r == ',' || r == ' ' }), value) && value != "or"
}

// misspelt is how many letters may differ for a name to be taken for another.
const misspelt = 2

func (p *addressParser) checkParameters(scheme string) {
	names := make([]string, 0, len(p.query))
	for name := range p.query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := p.query[name]
		want, known := parameters[name]
		switch {
		case !known:
			for other := range parameters {
				if len(name) > misspelt+1 && levenshtein.ComputeDistance(name, other) <= misspelt {
					p.fault("%s: unknown; the nearest is %s", name, other)
				}
			}
		case len(values) > 1:
			p.fault("%s: is there %d times; want one", name, len(values))
		case !fits(values[0], want) && name == "password":
			p.fault("password: want %s", want)
		case !fits(values[0], want):
			p.fault("%s=%q: want %s", name, values[0], want)
		}
	}
	if secure, err := strconv.ParseBool(p.query.Get("secure")); err == nil && (secure && scheme == "http" || !secure && schemes[scheme].secure) {
		p.fault("secure=%v: %s:// says otherwise", secure, scheme)
	}
}

// certificates reads the files that TLS needs.
func (p *addressParser) certificates() *tls.Config {
	given := map[string]string{}
	for name, variable := range map[string]string{"ca": caVariable, "cert": certVariable, "key": keyVariable} {
		given[name] = p.take(name)
		switch {
		case given[name] != "" && !p.secure:
			p.fault("%s: is for TLS only; write clickhouses:// or https://", name)
		case given[name] == "" && p.secure:
			given[name] = p.getenv(variable)
		}
	}
	slices.Sort(p.faults)
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if !p.secure {
		return config
	}
	if file := given["ca"]; file != "" {
		text, err := os.ReadFile(file)
		config.RootCAs = x509.NewCertPool()
		if err != nil {
			p.fault("ca: %v", err)
		} else if !config.RootCAs.AppendCertsFromPEM(text) {
			p.fault("ca: %s has no certificate in PEM", file)
		}
	}
	if (given["cert"] == "") != (given["key"] == "") {
		p.fault("cert, key: want both, or neither")
	} else if given["cert"] != "" {
		pair, err := tls.LoadX509KeyPair(given["cert"], given["key"])
		if err != nil {
			p.fault("cert, key: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// password is that of the environment, or of the file that it names.
func (p *addressParser) password() string {
	file := p.getenv(passwordFileVariable)
	if password := p.getenv(passwordVariable); password != "" || file == "" {
		return password
	}
	text, err := os.ReadFile(file)
	if err != nil {
		p.fault("%s: %v", passwordFileVariable, err)
	}
	return strings.TrimRight(string(text), "\r\n")
}
