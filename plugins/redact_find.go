package plugins

import (
	"regexp"
	"slices"
)

// builtinFinders are the kinds there are, in the order they are looked for: the
// more certain first, since what one finds the next does not see.
var builtinFinders = []finder{
	patterns("key",
		regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`),
		regexp.MustCompile(`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`),                                    // sk-…, pk_live_…
		regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),                                           // AWS
		regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{22,}`),                           // GitHub
		regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),                                        // Slack
		regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`),                                                 // Google
		regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),            // JSON web token
		regexp.MustCompile(`(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}=*)`),                               // of a header
		regexp.MustCompile(`(?i)\b(?:api|secret|access)[-_ ]?key["']?\s*[:=]\s*["']?([^\s"',;]{8,})`), // api_key: …
	),
	patterns("email", regexp.MustCompile(`[\p{L}\p{N}._%+-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}`)),
	{"card", findCards},
	patterns("phone",
		regexp.MustCompile(`\+\d{1,3}(?:[ .()/-]{0,2}\d){6,13}\b`),   // +49 30 1234567
		regexp.MustCompile(`\(\d{2,5}\)[ -]?\d{3,4}[ .-]?\d{3,5}\b`), // (030) 1234 5678
		regexp.MustCompile(`\b0\d{1,4}[ /-]\d{3,4}[ -]?\d{3,5}\b`),   // 030/1234567
		regexp.MustCompile(`\b\d{3}[-.]\d{3}[-.]\d{4}\b`),            // 555-010-1234
	),
}

// patterns finds what any of the patterns matches, or of a pattern with groups,
// its first.
func patterns(kind string, list ...*regexp.Regexp) finder {
	return finder{kind, func(text string) [][]int {
		var found [][]int
		for _, re := range list {
			for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
				place := m[:2]
				if len(m) > 2 {
					place = m[2:4]
				}
				if place[0] < place[1] { // a group may take no part in the match
					found = append(found, place)
				}
			}
		}
		return apart(found)
	}}
}

// apart sorts places and leaves out those that overlap an earlier one.
func apart(places [][]int) [][]int {
	slices.SortStableFunc(places, func(a, b []int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return b[1] - a[1] // the longer first
	})
	end := 0
	return slices.DeleteFunc(places, func(p []int) bool {
		if p[0] < end {
			return true
		}
		end = p[1]
		return false
	})
}

var digitRun = regexp.MustCompile(`\d(?:[ -]?\d)*`)

// findCards finds payment card numbers: 13 to 19 digits that begin with 2 to 6
// and pass the Luhn check (ISO/IEC 7812-1), written together or in groups. In a
// longer run of digits, every sequence of whole groups may be one.
func findCards(text string) [][]int {
	var found [][]int
	for _, run := range digitRun.FindAllStringIndex(text, -1) {
		for begin := run[0]; begin < run[1]; begin++ {
			if !isDigit(text[begin]) || begin > run[0] && isDigit(text[begin-1]) {
				continue
			}
			if end := cardEnd(text[:run[1]], begin); end > 0 {
				found = append(found, []int{begin, end})
				begin = end
			}
		}
	}
	return found
}

// cardEnd is the end of the longest card number that begins there; 0 for none.
func cardEnd(text string, begin int) int {
	if text[begin] < '2' || text[begin] > '6' {
		return 0
	}
	var digits []byte
	best := 0
	for i := begin; i < len(text) && len(digits) <= 19; i++ {
		if !isDigit(text[i]) {
			continue
		}
		digits = append(digits, text[i]-'0')
		last := i+1 == len(text) || !isDigit(text[i+1])
		if last && len(digits) >= 13 && len(digits) <= 19 && luhn(digits) {
			best = i + 1
		}
	}
	return best
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		n := int(d)
		if (len(digits)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}
