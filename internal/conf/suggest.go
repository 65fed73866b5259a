package conf

import "strings"

// Suggest returns the known word that a misspelt word most likely means, or ""
// when none is near: within a third of the word's length, at least one, counting
// letters left out, added, changed and swapped with their neighbour. Case, and
// the difference between - and _, count nothing. Of equally near words the
// first wins.
func Suggest(word string, known []string) string {
	w := fold(word)
	best, least := "", max(1, len(w)/3)+1
	for _, k := range known {
		if d := distance(w, fold(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

func fold(s string) []rune {
	return []rune(strings.ReplaceAll(strings.ToLower(s), "-", "_"))
}

// distance is the optimal string alignment distance.
func distance(a, b []rune) int {
	before := make([]int, len(b)+1) // two rows up
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
