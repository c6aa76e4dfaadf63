package main

import (
	"fmt"
	"time"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/loadgen/population"

	"github.com/schollz/progressbar/v3"
)

// sendProgress returns a function that shows how many visitors have been sent,
// and a function that clears it.
func (p *program) sendProgress(name string, visitors int) (update func(population.Progress), clearProgress func()) {
	show := terminal.NewProgress(p.err, name, false)
	return func(now population.Progress) {
		show.ShowAmounts(int64(now.Visitors), int64(visitors), func() {
			p.printDiagnostic("%s: %d of %d visitors, %d events", name, now.Visitors, visitors, now.Events)
		})
	}, show.ClearBar
}

// phaseLinePeriod is the time between two lines of phaseProgress.
const phaseLinePeriod = 10 * time.Second

// phaseProgress returns a function that shows the progress of a phase: a
// progress bar on a terminal, otherwise a line from time to time.
func (p *program) phaseProgress() func(phase string, done, total int) {
	var bar *progressbar.ProgressBar
	isTerminal, current, lastLine := terminal.Is(p.err), "", time.Now()
	return func(phase string, done, total int) {
		switch {
		case isTerminal && phase != current:
			bar = terminal.NewBar(p.err, phase, int64(total), false)
			fallthrough
		case isTerminal:
			_ = bar.Set(done)
		case done == total || time.Since(lastLine) > phaseLinePeriod:
			lastLine = time.Now()
			_, _ = fmt.Fprintf(p.err, "%s: %d of %d\n", phase, done, total)
		}
		current = phase
	}
}
