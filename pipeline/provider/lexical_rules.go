package provider

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// rule is a sentence of an instruction that says when to give an answer.
type rule struct {
	text    string   // the sentence, without its full stop
	answer  string   // what to choose
	subject string   // what is looked at, as the sentence calls it
	exact   bool     // contains: a text anywhere; else mentions: whole words
	not     bool     // none of the keys may be there
	all     bool     // every key must be there; else any one
	keys    []string // what is looked for; nil holds always
}

// The sentences that are rules. The lexical baseline follows nothing else.
var (
	whenRule      = regexp.MustCompile(`(?is)^(?:choose|answer|pick)\s+(.+?)\s+(?:when|whenever|if)\s+(.+?)\s+(mentions?|contains?|(?:does|do) not (?:mention|contain))\s+(.+)$`)
	otherwiseRule = regexp.MustCompile(`(?is)^(?:choose|answer|pick)\s+(.+?),?\s+otherwise$`)
	otherwiseElse = regexp.MustCompile(`(?is)^otherwise,?\s+(?:choose|answer|pick)\s+(.+)$`)
)

// readRules finds the rules of an instruction, in order.
func readRules(instruction string) []rule {
	var rules []rule
	for s := range sentences(straightQuotes.Replace(instruction)) {
		if m := whenRule.FindStringSubmatch(s); m != nil {
			verb := strings.ToLower(m[3])
			r := rule{
				text: s, answer: unquote(m[1]), subject: m[2],
				exact: strings.Contains(verb, "contain"), not: strings.Contains(verb, "not"),
			}
			var ok bool
			if r.keys, r.all, ok = readKeys(m[4]); ok && !(r.not && r.all) {
				rules = append(rules, r)
			}
			continue
		}
		m := otherwiseRule.FindStringSubmatch(s)
		if m == nil {
			m = otherwiseElse.FindStringSubmatch(s)
		}
		if m != nil {
			rules = append(rules, rule{text: s, answer: unquote(m[1])})
		}
	}
	return rules
}

var straightQuotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "\u00a0", " ")

func unquote(s string) string { return strings.Trim(s, "\"`'") }

// readKeys reads `a, b or c`, which any one satisfies, or `a, b and c`, which
// takes all. A key in double quotes may hold commas, "or" and "and". It is not ok
// when both words part the keys: what is meant cannot be told.
func readKeys(list string) (keys []string, all, ok bool) {
	anyOf := false
	add := func(key string) {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, strings.Trim(key, `"`))
		}
	}
	inQuotes, from := false, 0
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case list[i] == ',':
			add(list[from:i])
			from = i + 1
		default:
			word, isWord := joining(list, i)
			if !isWord {
				continue
			}
			add(list[from:i])
			from = i + len(word)
			i = from - 1
			if strings.EqualFold(word, "or") {
				anyOf = true
			} else {
				all = true
			}
		}
	}
	add(list[from:])
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == "" })
	return keys, all, len(keys) > 0 && !inQuotes && !(anyOf && all)
}

// joining reports whether the word "or" or "and" stands at i.
func joining(s string, i int) (word string, ok bool) {
	for _, word := range []string{"or", "and"} {
		end := i + len(word)
		if end < len(s) && strings.EqualFold(s[i:end], word) && isSpace(s[end]) && (i == 0 || isSpace(s[i-1]) || s[i-1] == ',' || s[i-1] == '"') {
			return s[i:end], true
		}
	}
	return "", false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// holds reports whether the rule is for a question. When its subject names one of
// the question's fields, only that field is looked at.
func (r *rule) holds(question []field) bool {
	if r.keys == nil {
		return true
	}
	subject := words(r.subject)
	if i := slices.IndexFunc(question, func(f field) bool { return hasRun(subject, words(f.name)) }); i >= 0 {
		question = question[i : i+1]
	}
	found := 0
	for _, key := range r.keys {
		if slices.ContainsFunc(question, func(f field) bool { return r.finds(key, f) }) {
			found++
		}
	}
	switch {
	case r.not:
		return found == 0
	case r.all:
		return found == len(r.keys)
	}
	return found > 0
}

func (r *rule) finds(key string, in field) bool {
	if r.exact {
		return strings.Contains(strings.ToLower(in.value), strings.ToLower(key))
	}
	return hasRun(in.words, words(key))
}

// sentences yields the sentences of an instruction without their full stops. One
// begins at the start of the text, of a list item (after a "name:" of its own,
// as in guidance), after a blank line, after the end of another, and on a line
// that begins with a rule's verb.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var block strings.Builder
		flush := func() bool {
			paragraph := block.String()
			block.Reset()
			return cutSentences(paragraph, yield)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			item, isItem := listItem(line)
			if line == "" || isItem || lineRule.MatchString(line) {
				if !flush() {
					return
				}
				if isItem {
					line = item
				}
			}
			block.WriteString(line + " ")
		}
		flush()
	}
}

var (
	lineRule  = regexp.MustCompile(`^(?:Choose|Answer|Pick|Otherwise)\b`)
	itemStart = regexp.MustCompile(`^(?:[-*•]|\d+[.)])\s+(?:[\pL\pN_]+:\s+)?`)
)

func listItem(line string) (item string, ok bool) {
	if m := itemStart.FindString(line); m != "" {
		return line[len(m):], true
	}
	return line, false
}

// cutSentences yields the sentences of a paragraph. An end is a full stop, or its
// like, before white space or the end, and not inside double quotes.
func cutSentences(text string, yield func(string) bool) bool {
	inQuotes, from := false, 0
	give := func(to int) bool {
		s := strings.TrimSpace(text[from:to])
		return s == "" || yield(s)
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			inQuotes = !inQuotes
		case '.', '!', '?':
			if !inQuotes && (i+1 == len(text) || isSpace(text[i+1])) {
				if !give(i) {
					return false
				}
				from = i + 1
			}
		}
	}
	return give(len(text))
}
