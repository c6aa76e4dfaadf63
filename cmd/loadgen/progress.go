package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"lifthouse/loadgen"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how many visitors are made: a bar on a terminal, else a line
// now and then.
type progress struct {
	program  *program
	what     string
	visitors int
	bar      *progressbar.ProgressBar
	told     time.Time
}

// tellEvery is the pace of plain progress lines.
const tellEvery = 5 * time.Second

func (p *program) progress(what string, visitors int) *progress {
	return &progress{program: p, what: what, visitors: visitors, told: time.Now()}
}

func (s *progress) update(now loadgen.Progress) {
	if isTerminal(s.program.err) {
		if s.bar == nil {
			s.bar = s.program.bar(s.what, s.visitors, progressbar.OptionShowCount())
		}
		_ = s.bar.Set(now.Visitors)
		return
	}
	if time.Since(s.told) >= tellEvery {
		s.told = time.Now()
		s.program.complain("%s: %d of %d visitors, %d events", s.what, now.Visitors, s.visitors, now.Events)
	}
}

func (p *program) bar(what string, of int, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions(of, append(more, progressbar.OptionSetWriter(p.err), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())...)
}

func (s *progress) clear() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

// progressEvery is how often a line tells of a phase where no bar can.
const progressEvery = 10 * time.Second

// phases shows how far a phase is: a bar on a terminal, and elsewhere a line
// now and then.
func (p *program) phases() func(phase string, done, of int) {
	var bar *progressbar.ProgressBar
	terminal, current, last := isTerminal(p.err), "", time.Now()
	return func(phase string, done, of int) {
		switch {
		case terminal && phase != current:
			bar = p.bar(phase, of)
			fallthrough
		case terminal:
			_ = bar.Set(done)
		case done == of || time.Since(last) > progressEvery:
			last = time.Now()
			_, _ = fmt.Fprintf(p.err, "%s: %d of %d\n", phase, done, of)
		}
		current = phase
	}
}

func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
