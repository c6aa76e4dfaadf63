package render

import (
	"math"
	"strings"

	"github.com/rivo/uniseg"
)

// WrapText breaks a text into lines of at most width terminal columns. It keeps a
// number and its percent sign together. A longer word gets its own line.
func WrapText(text string, width int) []string {
	const held = "\x00%"
	text = strings.ReplaceAll(text, " %", held)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = strings.ReplaceAll(word, held, " %")
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// ShortenText cuts a text to a width in terminal columns. An ellipsis replaces the
// rest.
func ShortenText(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	end, used := 0, 1 // 1 for the ellipsis
	characters := uniseg.NewGraphemes(text)
	for characters.Next() {
		if used += characters.Width(); used > width {
			break
		}
		_, end = characters.Positions()
	}
	return text[:end] + "…"
}

// NiceStep returns the smallest number of the form 1, 2 or 5 times a power of
// ten that is at least x.
func NiceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= x {
			return times * power
		}
	}
	return 10 * power
}

// StepDecimals returns the number of decimals needed to distinguish multiples of a step in per
// cent. The step is a fraction.
func StepDecimals(step float64) int {
	return min(max(0, -int(math.Floor(math.Log10(step)+1e-9))-2), 9)
}

// LiftRange returns a scale that covers the lifts and 0, with a margin at both ends.
// It returns false if there are no lifts.
func LiftRange(lifts []float64) (least, most float64, ok bool) {
	// Beyond largest, the span overflows. Below smallest, the scale is fixed.
	const smallest, largest, margin = 1e-12, 1e300, 0.04
	for _, x := range lifts {
		least, most = min(least, max(x, -largest)), max(most, min(x, largest))
	}
	if most-least < smallest {
		least, most = -0.01, 0.01
	}
	space := margin * (most - least)
	return least - space, most + space, len(lifts) > 0
}
