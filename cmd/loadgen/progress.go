package main

import (
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
			s.bar = progressbar.NewOptions(s.visitors, progressbar.OptionSetWriter(s.program.err), progressbar.OptionSetDescription(s.what),
				progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = s.bar.Set(now.Visitors)
		return
	}
	if time.Since(s.told) >= tellEvery {
		s.told = time.Now()
		s.program.complain("%s: %d of %d visitors, %d events", s.what, now.Visitors, s.visitors, now.Events)
	}
}

func (s *progress) clear() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
