package metrics

import "evalrun/internal/normal"

// normalize makes texts that count as equal the same.
func normalize(s string) string { return normal.Text(s) }

// fold is Unicode's full case folding.
func fold(s string) string { return normal.Fold(s) }

// isSpace is the contract's white space.
func isSpace(r rune) bool { return normal.IsSpace(r) }
