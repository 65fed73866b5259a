package provider

import (
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Secret is a key: whatever prints it prints that there is one.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// hidden stands where a secret was.
const hidden = "[secret]"

// leastSecret is the length in bytes from which a secret is hidden wherever it
// turns up. What is shorter is a placeholder, such as the "EMPTY" that local
// servers are given, and may well be a word of a reply.
const leastSecret = 8

// plainNames are those of headers, and of members of a query, that hold what
// everybody may see: whatever else a person has sent with every request is theirs.
var plainNames = regexp.MustCompile(`(?i)^(accept|content-.*|user-agent|(http-)?referer|x-title|.*-(version|beta))$`)

// conceal has a value hidden from now on, unless its name says that it is no secret;
// of two words, as in "Bearer KEY", the second as well.
func (s *service) conceal(name, value string) {
	if plainNames.MatchString(name) {
		return
	}
	_, second, _ := strings.Cut(value, " ")
	for _, secret := range []string{value, second} {
		if len(secret) >= leastSecret {
			s.secrets = append(s.secrets, spellings(secret)...)
		}
	}
	slices.SortStableFunc(s.secrets, func(a, b string) int { return len(b) - len(a) }) // "Bearer KEY" before KEY
}

// spellings are the forms in which a service may say a secret back: as it is, and as
// JSON, HTML and addresses have it.
func spellings(secret string) []string {
	inJSON := func(o ...json.Options) string {
		quoted, _ := json.Marshal(secret, append(o, lenientJSON)...)
		return strings.Trim(string(quoted), `"`)
	}
	all := []string{secret, html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret)}
	all = append(all, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(all[1]))
	for _, quoted := range []string{inJSON(), inJSON(jsontext.EscapeForHTML(true))} {
		all = append(all, quoted, strings.ReplaceAll(quoted, "/", `\/`))
	}
	for _, form := range slices.Clone(all) {
		all = append(all, escapes.ReplaceAllStringFunc(form, strings.ToLower), escapes.ReplaceAllStringFunc(form, func(e string) string { return e[:2] + strings.ToUpper(e[2:]) }))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// escapes are those with hexadecimal digits, which have either case.
var escapes = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}`)

// hide takes secrets out of a text that came from elsewhere.
func (s *service) hide(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
