package terminal

import "fmt"

// CountWithNoun writes a number with its noun in the singular or, with an s, in the plural:
// 1 row, 2 rows.
func CountWithNoun[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
