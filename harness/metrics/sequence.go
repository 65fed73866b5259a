package metrics

// maxCells bounds the work of comparing two sequences element by element: about a
// tenth of a second.
const maxCells = 100_000_000

// longestCommon is the length of the longest common subsequence (Wagner and
// Fischer 1974), in O(len(a)·len(b)) steps.
func longestCommon[T any](a, b []T, equal func(x, y T) bool) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if equal(x, y) {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func alike(x, y string) bool { return x == y }

// edits is the least number of insertions, deletions and substitutions that make
// a into b (Levenshtein 1966), in O(len(a)·len(b)) steps.
func edits[T comparable](a, b []T) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			above := row[j+1]
			step := diagonal
			if x != y {
				step++
			}
			row[j+1] = min(step, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
