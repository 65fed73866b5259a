package metrics

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// squadTokens are the words of a text as the SQuAD evaluation script (Rajpurkar
// and others 2016) has them: in lower case, without ASCII punctuation, without the
// articles a, an and the, split at white space.
func squadTokens(s string) []string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			return -1
		}
		return r
	}, strings.ToLower(s))
	var words []string
	for _, chunk := range strings.FieldsFunc(s, isSpace) {
		words = append(words, strings.FieldsFunc(withoutArticles(chunk), isSpace)...)
	}
	return words
}

// withoutArticles puts a blank where a run of word characters is an article, also
// inside of what white space does not split: the—cat.
func withoutArticles(chunk string) string {
	var out []byte
	word := 0 // where the last run began, in out
	end := func() {
		switch string(out[word:]) {
		case "a", "an", "the":
			out = append(out[:word], ' ')
		}
	}
	for _, r := range chunk {
		if !isWord(r) {
			end()
		}
		out = utf8.AppendRune(out, r)
		if !isWord(r) {
			word = len(out)
		}
	}
	end()
	return string(out)
}

// isWord is what Python's \w matches.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// wordTokens are runs of letters, marks and digits, with their case folded;
// everything else is left out.
func wordTokens(s string) []string {
	return strings.FieldsFunc(fold(s), func(r rune) bool { return !isToken(r) })
}

func isToken(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// markTokens are runs of letters, marks and digits, and every other character that
// is no white space by itself, with their case folded.
func markTokens(s string) []string {
	var all []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range fold(s) {
		switch {
		case isToken(r):
			word.WriteRune(r)
		default:
			end()
			if !isSpace(r) {
				all = append(all, string(r))
			}
		}
	}
	end()
	return all
}

// counts are how often each token occurs.
func counts(tokens []string) map[string]int {
	n := map[string]int{}
	for _, t := range tokens {
		n[t]++
	}
	return n
}

// overlap is how many tokens two lists share, each as often as both have it.
func overlap(a, b []string) int {
	have, n := counts(a), 0
	for _, t := range b {
		if have[t] > 0 {
			have[t]--
			n++
		}
	}
	return n
}
