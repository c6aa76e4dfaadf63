package main

import (
	"fmt"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/loadgen/population"
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

// phaseProgress returns a function that shows the progress of phases, and a line at the end of each phase.
func (p *program) phaseProgress() func(phase string, done, total int) {
	var show *terminal.Progress
	current := ""
	return func(phase string, done, total int) {
		if phase != current {
			show, current = terminal.NewProgress(p.err, phase, false), phase
		}
		line := func() { _, _ = fmt.Fprintf(p.err, "%s: %d of %d\n", phase, done, total) }
		if done < total {
			show.ShowAmounts(int64(done), int64(total), line)
			return
		}
		show.ClearBar()
		line()
	}
}
