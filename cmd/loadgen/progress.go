package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"lifthouse/loadgen/send"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// sendProgress shows how many visitors have been sent: a progress bar on a
// terminal, otherwise a line from time to time.
type sendProgress struct {
	program  *program
	name     string
	visitors int
	bar      *progressbar.ProgressBar
	lastLine time.Time
}

// sendLinePeriod is the time between two progress lines.
const sendLinePeriod = 5 * time.Second

func (p *program) sendProgress(name string, visitors int) *sendProgress {
	return &sendProgress{program: p, name: name, visitors: visitors, lastLine: time.Now()}
}

func (s *sendProgress) update(now send.Progress) {
	if isTerminal(s.program.err) {
		if s.bar == nil {
			s.bar = s.program.bar(s.name, s.visitors, progressbar.OptionShowCount())
		}
		_ = s.bar.Set(now.Visitors)
		return
	}
	if time.Since(s.lastLine) >= sendLinePeriod {
		s.lastLine = time.Now()
		s.program.logf("%s: %d of %d visitors, %d events", s.name, now.Visitors, s.visitors, now.Events)
	}
}

func (s *sendProgress) clear() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

func (p *program) bar(name string, total int, options ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, append(options, progressbar.OptionSetWriter(p.err), progressbar.OptionSetDescription(name),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())...)
}

// phaseLinePeriod is the time between two lines of phaseProgress.
const phaseLinePeriod = 10 * time.Second

// phaseProgress returns a function that shows the progress of a phase: a
// progress bar on a terminal, otherwise a line from time to time.
func (p *program) phaseProgress() func(phase string, done, total int) {
	var bar *progressbar.ProgressBar
	terminal, current, lastLine := isTerminal(p.err), "", time.Now()
	return func(phase string, done, total int) {
		switch {
		case terminal && phase != current:
			bar = p.bar(phase, total)
			fallthrough
		case terminal:
			_ = bar.Set(done)
		case done == total || time.Since(lastLine) > phaseLinePeriod:
			lastLine = time.Now()
			_, _ = fmt.Fprintf(p.err, "%s: %d of %d\n", phase, done, total)
		}
		current = phase
	}
}

func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
