package embedded

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// session is a connection of the library with the state that its statements see. It runs one statement at a time. The
// library has settings and a current database only per connection. So a session changes them if its next statement
// needs different ones. Its methods must not be called concurrently.
type session struct {
	lib      *library
	handle   handle
	mark     string // value of markSetting, which identifies the running statement
	database string
	settings map[string]string
}

// markSetting is a setting that has no effect without an HTTP server. Every session has a unique value of it. The value
// is visible in system.processes.
const markSetting = "http_headers_progress_interval_ms"

const defaultDatabase = "default"

func (s *session) close() {
	if s.handle != 0 {
		s.lib.closeConn(s.handle)
		s.handle = 0
	}
}

// runQuery runs a statement to its end and returns its complete result.
func (s *session) runQuery(sql, format string, parameters []parameter) *result {
	return &result{s.lib, callStatement(s.handle, s.lib.query, sql, format, parameters)}
}

// applySettings sets the database and the settings of the session. After an error the session must be discarded.
func (s *session) applySettings(database string, settings, initial map[string]string) error {
	if database == "" {
		database = defaultDatabase
	}
	if database != s.database {
		if err := s.execStatement("USE " + quoteName(database)); err != nil {
			return err
		}
		s.database = database
	}
	changes := s.settingChanges(settings, initial)
	if len(changes) == 0 {
		return nil
	}
	if err := s.execStatement("SET " + strings.Join(changes, ", ")); err != nil {
		return err
	}
	s.settings = maps.Clone(settings)
	return nil
}

// settingChanges returns the assignments for SET that give the session the settings, and reset all other settings to
// their initial values.
func (s *session) settingChanges(settings, initial map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if value, ok := s.settings[name]; !ok || value != settings[name] {
			list = append(list, quoteName(name)+" = "+quoteText(settings[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		if _, ok := settings[name]; ok {
			continue
		}
		if value, ok := initial[name]; ok {
			list = append(list, quoteName(name)+" = "+quoteText(value))
		} else {
			list = append(list, quoteName(name)+" = DEFAULT")
		}
	}
	return list
}

// execStatement runs a statement and discards its result.
func (s *session) execStatement(sql string) error {
	r := s.runQuery(sql, "Null", nil)
	defer r.free()
	return r.err()
}

// queryText runs a statement and returns its result as tab-separated text.
func (s *session) queryText(sql string) (string, error) {
	r := s.runQuery(sql, "TSVRaw", nil)
	defer r.free()
	return string(r.bytes()), r.err()
}

var (
	textEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	nameEscaper = strings.NewReplacer(`\`, `\\`, "`", "\\`")
)

func quoteText(s string) string { return "'" + textEscaper.Replace(s) + "'" }

func quoteName(s string) string { return "`" + nameEscaper.Replace(s) + "`" }

// pool lends sessions. A session is lent to one statement at a time.
type pool struct {
	open   func() (*session, error)
	opened chan struct{} // one element per open session
	idle   chan *session
}

// takeSession returns a session. If all are lent, it waits for one until ctx ends.
func (p *pool) takeSession(ctx context.Context) (*session, error) {
	select {
	case s := <-p.idle:
		return s, nil
	default:
	}
	select {
	case s := <-p.idle:
		return s, nil
	case p.opened <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s, err := p.open()
	if err != nil {
		<-p.opened
	}
	return s, err
}

// discardSession closes a session whose state is unknown, instead of returning it to the pool.
func (p *pool) discardSession(s *session) {
	s.close()
	<-p.opened
}
